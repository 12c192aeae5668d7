package apt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// lockFiles are the locks of dpkg and apt. They are locked by fcntl(2), which
// flock(1) does not see.
var lockFiles = []string{"/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/lib/apt/lists/lock", "/var/cache/apt/archives/lock"}

// holder returns who holds one of the locks, such as "process 104 (apt-get)"; empty
// if nobody does.
func (h host) holder() (string, error) {
	for _, name := range lockFiles {
		pid, err := lockedBy(h.path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", fmt.Errorf("cannot test the lock %s: %w", name, err)
		case pid != 0:
			comm, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm")) // It may just have ended.
			return fmt.Sprintf("process %d (%s) holds %s", pid, strings.TrimSpace(string(comm)), name), nil
		}
	}
	return "", nil
}

// lockedBy returns the process that holds a lock; 0 if none does.
func lockedBy(path string) (int, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, &lock); err != nil {
		return 0, err
	}
	if lock.Type == unix.F_UNLCK {
		return 0, nil
	}
	return int(lock.Pid), nil
}

// lockPoll is how often a lock is tried that somebody holds: fcntl(2) tells nobody
// when it becomes free, and waiting in it would take it.
const lockPoll = 500 * time.Millisecond

// awaitLocks waits until nobody holds a lock of dpkg or apt: also an apt-get or dpkg
// that has outlived an agent that was killed. It waits for ever if until is zero.
func (s *Strategy) awaitLocks(ctx context.Context, until time.Time, progress func(int, string)) error {
	said := ""
	for {
		who, err := s.locked()
		if who == "" || err != nil {
			return err
		}
		if !until.IsZero() && !time.Now().Before(until) {
			return strategy.Fail(message.Lock, fmt.Errorf("%s, still after %s; wait for it to end, or raise apt-lock-limit", who, s.lockLimit))
		}
		if who != said {
			progress(-1, "waiting: "+who)
			said = who
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("while %s: %w", who, context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}
