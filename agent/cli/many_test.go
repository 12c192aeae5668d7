package cli

import (
	"flag"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

var manyWatched = flag.Int("watch.hosts", 1000, "how many hosts TestWatchOfManyHosts watches")

// counted counts the bytes that are read from a connection.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

// TestWatchOfManyHosts checks that watch of a large fleet stays readable and cheap: it
// prints counts every now and then and the hosts that fail, and what it is sent goes by
// what changes, not by how many hosts there are. Without hosts=changed each of some
// thousand events would have all hosts in it.
func TestWatchOfManyHosts(t *testing.T) {
	t.Parallel()
	var hosts []string
	for n := range *manyWatched {
		hosts = append(hosts, fmt.Sprintf("h%05d", n))
	}
	rollout := &v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "10%"}}, MaxFailures: "5"}
	var received atomic.Int64
	var out string
	begun := cpu(t)
	play(t, intended{windows: saturdays, rollout: rollout}, hosts, func(s *scene) {
		s.host("h00007", fails)
		s.dialed = func(c net.Conn) net.Conn { return counted{c, &received} }
		watched := s.watches("watch")
		s.until(2, 30, 0)
		out = watched()
	})
	lines := strings.Split(strings.TrimSpace(out), "\n")
	t.Logf("%d hosts: %d lines and %d bytes printed, %d bytes received, %s of processor time for site and watch", len(hosts), len(lines), len(out), received.Load(), cpu(t)-begun)
	if last := lines[len(lines)-1]; !strings.Contains(last, fmt.Sprintf("partial: %d of %d hosts upgraded; failed: h00007", len(hosts)-1, len(hosts))) {
		t.Errorf("the last line is %s", last)
	}
	if !strings.Contains(out, "h00007  rolled-back: cannot upgrade: no space left on device") || strings.Contains(out, "h00008  ") {
		t.Error("the host that failed is not shown, or another one is")
	}
	// A host has about eight statuses, and an event of each takes about 100 bytes.
	if most := int64(len(hosts) * 1200); len(lines) > 300 || received.Load() > most {
		t.Errorf("%d lines, and %d bytes received; at most %d should be", len(lines), received.Load(), most)
	}
}

// cpu is the processor time of this process.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
