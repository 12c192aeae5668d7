package dnf

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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

func (s *Strategy) locks() hostfs.Locks {
	return hostfs.Locks{Holder: s.locked, Limit: s.LockLimit, Option: "dnf-lock-limit"}
}

// awaitLocks waits until nobody holds a lock of dnf or rpm.
func (s *steps) awaitLocks(ctx context.Context) error {
	return s.locks().Await(ctx, s.until, s.progress)
}
