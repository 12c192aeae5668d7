package apt

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy/hostfs"
)

// lockFiles are the locks of dpkg and apt. They are locked by fcntl(2), which
// flock(1) does not see.
var lockFiles = []string{"/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/lib/apt/lists/lock", "/var/cache/apt/archives/lock"}

// awaitLocks waits until nobody holds a lock of dpkg or apt: also an apt-get or dpkg
// that has outlived an agent that was killed. It waits for ever if until is zero.
func (s *Strategy) awaitLocks(ctx context.Context, until time.Time, progress func(int, string)) error {
	advice := fmt.Sprintf("still after %s; wait for it to end, or raise apt-lock-limit", s.lockLimit)
	return hostfs.Await(ctx, s.locked, until, advice, progress)
}
