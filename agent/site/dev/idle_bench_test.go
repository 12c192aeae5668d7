package dev_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
)

// BenchmarkIdle is osupgrade-agent dev with three hosts that does nothing:
// its resident memory, and the share of one core that it uses.
func BenchmarkIdle(b *testing.B) {
	dir := b.TempDir()
	bin := filepath.Join(dir, "osupgrade-agent")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", bin, "../..").CombinedOutput(); err != nil {
		b.Fatalf("cannot build: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(b.Context(), bin, "dev", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	time.Sleep(measure.Span(5 * time.Second)) // What a start does is not idleness.
	before, err := measure.Ticks(cmd.Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	idle := measure.Span(20 * time.Second)
	time.Sleep(idle)
	after, err := measure.Ticks(cmd.Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	mib, err := measure.Resident(strconv.Itoa(cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() { // The figures below are all that counts.
	}
	b.ReportMetric(mib, "MiB-resident")
	b.ReportMetric(float64(after-before)/100/idle.Seconds()*100, "%-of-a-core")
	b.ReportMetric(0, "ns/op")
}
