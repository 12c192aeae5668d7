package dnf

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/hostfs"
)

// rpmLocks are those of rpm, locked by fcntl(2) during a transaction.
var rpmLocks = []string{"/var/lib/rpm/.rpm.lock", "/usr/lib/sysimage/rpm/.rpm.lock"}

// holder returns who holds a lock of dnf or rpm; empty if nobody does.
func (g *generation) holder(h hostfs.Root) (string, error) {
	for _, name := range g.pidFiles {
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
	return h.Holder(slices.Concat(g.fileLocks, rpmLocks)...)
}

func (s *Strategy) locks() hostfs.Locks {
	return hostfs.Locks{Holder: s.locked, Limit: s.LockLimit, Option: "dnf-lock-limit"}
}

// awaitLocks waits until nobody holds a lock of dnf or rpm.
func (s *call) awaitLocks(ctx context.Context) error {
	return s.locks().Await(ctx, s.until, s.progress)
}
