package apt

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/hostfs"
)

// lockFiles are the locks of dpkg and apt. They are locked by fcntl(2), which
// flock(1) does not see.
var lockFiles = []string{"/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/lib/apt/lists/lock", "/var/cache/apt/archives/lock"}

func (s *Strategy) locks() hostfs.Locks {
	return hostfs.Locks{Holder: s.locked, Limit: s.LockLimit, Option: "apt-lock-limit"}
}

// awaitLocks waits until nobody holds a lock of dpkg or apt.
func (s *call) awaitLocks(ctx context.Context) error {
	return s.locks().Await(ctx, s.until, s.progress)
}

// locking runs a command that takes locks: apt waits for the lock of dpkg only, not for that
// of lists or archives, and dpkg for none.
func (s *call) locking(ctx context.Context, do func() error) error {
	return s.locks().Run(ctx, s.until, s.progress, do)
}
