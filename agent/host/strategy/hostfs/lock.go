package hostfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/procs"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Holder returns who holds one of some locks of fcntl(2), such as "process 104
// (apt-get) holds /var/lib/dpkg/lock"; empty if nobody does.
func (r Root) Holder(files ...string) (string, error) {
	for _, name := range files {
		pid, err := lockedBy(r.Path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", fmt.Errorf("cannot test the lock %s: %w", name, err)
		case pid != 0:
			return Holds(pid, name), nil
		}
	}
	return "", nil
}

// Holds says for people that a process holds a lock, and who has started it.
func Holds(pid int, name string) string {
	holds := fmt.Sprintf("process %d (%s) holds %s", pid, procs.Name(pid), name)
	if who := procs.StartedBy(pid); who != "" {
		holds += "; it was started by " + who
	}
	return holds
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

// Locks are the locks of a package manager.
type Locks struct {
	// Holder returns who holds one of them; empty if nobody does.
	Holder func() (string, error)
	// Option is the option that sets Limit, for people. Limit is how long to wait.
	Option string
	Limit  time.Duration
}

// Await waits until nobody holds a lock: also a program that has outlived an agent that was
// killed. It waits for ever if until is zero; otherwise it fails then.
func (l Locks) Await(ctx context.Context, until time.Time, progress func(int, string)) error {
	said := ""
	for {
		who, err := l.Holder()
		if who == "" || err != nil {
			return err
		}
		if !until.IsZero() && !time.Now().Before(until) {
			return strategy.Fail(message.Lock, fmt.Errorf("%s; still after %s; %s", who, l.Limit, remedy.WaitOrRaise.With(l.Option)))
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

// Run runs a program that takes locks, when nobody holds one, and again as long as somebody
// was faster.
func (l Locks) Run(ctx context.Context, until time.Time, progress func(int, string), do func() error) error {
	for {
		if err := l.Await(ctx, until, progress); err != nil {
			return err
		}
		err := do()
		if strategy.ClassOf(err) != message.Lock || !until.IsZero() && !time.Now().Before(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lockPoll):
		}
	}
}
