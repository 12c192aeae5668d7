package dev_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// idleTime is how long an idle agent is looked at.
const idleTime = 20 * time.Second

// BenchmarkIdle is osupgrade-agent dev with three hosts that does nothing:
// its resident memory, and the share of one core that it uses.
func BenchmarkIdle(b *testing.B) {
	dir := b.TempDir()
	bin := filepath.Join(dir, "osupgrade-agent")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", bin, "..").CombinedOutput(); err != nil {
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
	time.Sleep(5 * time.Second) // What a start does is not idleness.
	before := ticks(b, cmd.Process.Pid)
	time.Sleep(idleTime)
	used := ticks(b, cmd.Process.Pid) - before
	for b.Loop() { // The figures below are all that counts.
	}
	b.ReportMetric(resident(b, strconv.Itoa(cmd.Process.Pid)), "MiB-resident")
	b.ReportMetric(float64(used)/100/idleTime.Seconds()*100, "%-of-a-core")
	b.ReportMetric(0, "ns/op")
}

// ticks is the processor time that a process has used, in hundredths of a
// second (proc(5)).
func ticks(b *testing.B, pid int) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	var user, system int
	fields := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+1:])
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		b.Fatal(err)
	}
	return user + system
}
