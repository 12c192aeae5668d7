package dnf

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy/hostfs"
)

// pidFiles are the locks of dnf: each has the id of the process that holds it. A dnf that
// was killed leaves them, and the next one takes them over.
var pidFiles = []string{"/var/lib/dnf/rpmdb_lock.pid", cacheFolder + "/download_lock.pid", cacheFolder + "/metadata_lock.pid"}

// rpmLocks are those of rpm, locked by fcntl(2) during a transaction.
var rpmLocks = []string{"/var/lib/rpm/.rpm.lock", "/usr/lib/sysimage/rpm/.rpm.lock"}

// holder returns who holds a lock of dnf or rpm; empty if nobody does.
func holder(h hostfs.Root) (string, error) {
	for _, name := range pidFiles {
		content, err := h.Read(name)
		if err != nil {
			return "", err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(content))
		if err != nil || pid <= 0 || pid == os.Getpid() {
			continue // No lock, or one that dnf itself complains of.
		}
		if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid), "stat")); err == nil {
			return hostfs.Holds(pid, name), nil
		}
	}
	return h.Holder(rpmLocks...)
}

// awaitLocks waits until nobody holds a lock of dnf or rpm: also a dnf that has outlived
// an agent that was killed. It waits for ever if until is zero.
func (s *steps) awaitLocks(ctx context.Context) error {
	advice := fmt.Sprintf("still after %s; wait for it to end, or raise dnf-lock-limit", s.LockLimit)
	return hostfs.Await(ctx, s.locked, s.until, advice, s.progress)
}

// wait waits a moment before a lock is tried again.
func wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(hostfs.LockPoll):
	}
}
