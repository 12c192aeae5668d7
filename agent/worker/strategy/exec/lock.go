package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/script"
)

const (
	lockFile = "exec.lock"
	// maxHolder bounds what is read of the lock file, in bytes.
	maxHolder = 1000
)

// holder is what the lock file says about the script that has the lock, for
// people and to find its output.
type holder struct {
	Action action `json:"action"`
	Run    uint64 `json:"run"`
}

func (h holder) String() string {
	switch {
	case h.Action == "":
		return "an earlier script"
	case h.Run == 0:
		return string(h.Action)
	default:
		return fmt.Sprintf("%s of run %d", h.Action, h.Run)
	}
}

func (s *Strategy) openLock() (*os.File, error) {
	return os.OpenFile(filepath.Join(s.stateDir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
}

// acquire returns the lock once no script runs any more.
func (s *Strategy) acquire(ctx context.Context, a action, progress func(int, string)) (*os.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	lock, err := s.openLock()
	if err != nil {
		return nil, err
	}
	err = flock(lock, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return s.await(ctx, a, lock, progress)
	}
	return taken(lock, err)
}

// taken is what came of locking.
func taken(lock *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", lock.Name(), err), lock.Close())
	}
	return lock, nil
}

// await waits for the script that has the lock and follows its output
// meanwhile.
func (s *Strategy) await(ctx context.Context, a action, lock *os.File, progress func(int, string)) (*os.File, error) {
	held := readHolder(lock)
	earlier := s.followEarlier(held, progress)
	defer earlier.abandon()
	progress(-1, "waiting for "+held.String())
	got, abandon := lockLater(lock)
	expired := s.after(s.limits[a])
	for {
		select {
		case err := <-got:
			return taken(lock, err)
		case <-ctx.Done():
			abandon()
			return nil, fmt.Errorf("%s still runs: %w", held, ctx.Err())
		case <-expired:
			select {
			case err := <-got:
				return taken(lock, err)
			case <-time.After(script.Notice):
			}
			err := fmt.Errorf("%s still runs after %s of waiting, in %s; a process left in the background must close descriptor %d",
				held, s.limits[a], strings.Join(lockedBy(lock), ", "), lockFD)
			abandon()
			return nil, err
		case <-earlier.changed():
			earlier.tail.follow()
		case err := <-earlier.missed():
			earlier.blame(err)
			earlier.tail.follow()
		}
	}
}

// lockLater takes the lock in the background, for a blocked flock cannot be
// called off. It tells when it has it, from when on the lock is the caller's
// again; abandoned before that, it closes the lock itself.
func lockLater(lock *os.File) (got <-chan error, abandon func()) {
	result, abandoned := make(chan error), make(chan struct{})
	go func() {
		err := flock(lock, syscall.LOCK_EX)
		select {
		case result <- err:
		case <-abandoned:
			_ = lock.Close() // Nothing was written, and nobody is there to hear.
		}
	}()
	return result, func() { close(abandoned) }
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// leaveWord writes down which script is about to get the lock.
func leaveWord(lock *os.File, h holder) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err = lock.WriteAt(append(data, '\n'), 0)
	return err
}

// readHolder never fails: what cannot be read is an earlier script, unnamed.
func readHolder(lock *os.File) holder {
	data, err := io.ReadAll(io.NewSectionReader(lock, 0, maxHolder))
	var h holder
	if err != nil || json.Unmarshal(data, &h) != nil {
		return holder{}
	}
	return h
}
