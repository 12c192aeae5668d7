//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestHostileConnections opens many connections to a real agent that send nothing, a header
// that never ends, or a body that never ends, and checks that others are answered meanwhile
// and that the agent's memory stays bounded: 10,000 of them with OSUPGRADE_LONG.
func TestHostileConnections(t *testing.T) { //nolint:paralleltest // It measures.
	count, growth := 1000, 100
	if long() {
		count, growth = 10_000, 450 // Of 4,096 connections, each with 20 to 80 kB.
	}
	f := newProgram(t)
	dev := f.startDev()
	before := residentMiB(t, dev.Process.Pid)
	for _, row := range []struct{ name, begin, more string }{
		{"idle", "", ""},
		{"slow header", "GET /healthz HTTP/1.1\r\nHost: x\r\n", "X-Slow: x\r\n"},
		{"slow login", "POST /v1/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n", " "},
	} {
		connections := make([]net.Conn, count)
		opened := time.Now()
		for i := range connections {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.api)
			if err != nil {
				t.Fatalf("%s: connection %d: %v", row.name, i, err)
			}
			_, _ = io.WriteString(conn, row.begin) // The agent may have closed it already.
			connections[i] = conn
		}
		opening := time.Since(opened)
		ctx, stop := context.WithCancel(t.Context())
		dripped := make(chan struct{})
		go func() {
			defer close(dripped)
			for ctx.Err() == nil && row.more != "" {
				for _, conn := range connections {
					_, _ = io.WriteString(conn, row.more)
				}
				time.Sleep(100 * time.Millisecond)
			}
		}()
		took := f.askAnew(100)
		resident := residentMiB(t, dev.Process.Pid)
		stop()
		<-dripped
		for _, conn := range connections {
			_ = conn.Close()
		}
		t.Logf("%s: %d connections in %s; others are answered in %s (median) to %s; %d MiB resident, %d before",
			row.name, count, opening.Round(time.Millisecond), took[len(took)/2].Round(time.Microsecond), took[len(took)-1].Round(time.Microsecond), resident, before)
		if slowest := took[len(took)-1]; slowest > 10*time.Second {
			t.Errorf("%s: somebody waits for %s", row.name, slowest)
		}
		if resident > before+growth {
			t.Errorf("%s: the agent grows from %d to %d MiB", row.name, before, resident)
		}
	}
}

// askAnew sends requests, each on a connection of its own, and returns how long each took, in
// order.
func (f *fleet) askAnew(count int) []time.Duration {
	f.t.Helper()
	caller := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	took := make([]time.Duration, count)
	for i := range took {
		request, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, fmt.Sprintf("http://%s/v1/state/os-upgrade", f.api), nil)
		if err != nil {
			f.t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+f.token)
		begun := time.Now()
		response, err := caller.Do(request)
		if err != nil {
			f.t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			f.t.Errorf("somebody else is answered %s", response.Status)
		}
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	return took
}

var resident = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// residentMiB is the memory of a process.
func residentMiB(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := resident.FindSubmatch(text)
	if found == nil {
		t.Fatalf("no VmRSS in %s", text)
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}
