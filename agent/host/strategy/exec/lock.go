package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
)

const (
	lockFile = "exec.lock"
	// maxHolder bounds what is read of the lock file, in bytes.
	maxHolder = 1000
)

// holder is the content of the lock file: the script that holds the lock. It is
// shown to people and leads to the script's output.
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

// acquire waits until no script runs and returns the lock.
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

// taken returns the result of locking.
func taken(lock *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", lock.Name(), err), lock.Close())
	}
	return lock, nil
}

// await waits for the script that holds the lock, and follows its output.
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
			earlier.tail.fail(err)
			earlier.tail.follow()
		}
	}
}

// lockLater takes the lock in a goroutine, because a blocked flock(2) cannot be
// cancelled. Once it sends on got, the caller owns the lock. If the caller abandons
// it before that, it closes the lock itself.
func lockLater(lock *os.File) (got <-chan error, abandon func()) {
	result, abandoned := make(chan error), make(chan struct{})
	go func() {
		err := flock(lock, syscall.LOCK_EX)
		select {
		case result <- err:
		case <-abandoned:
			_ = lock.Close() // Nothing was written, so the error does not matter.
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

// writeHolder records which script gets the lock.
func writeHolder(lock *os.File, h holder) error {
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

// readHolder never fails: an unreadable holder is an unnamed earlier script.
func readHolder(lock *os.File) holder {
	data, err := io.ReadAll(io.NewSectionReader(lock, 0, maxHolder))
	var h holder
	if err != nil || json.Unmarshal(data, &h) != nil {
		return holder{}
	}
	return h
}

const (
	procFolder = "/proc"
	// maxNamed is how many processes an error names at most.
	maxNamed = 5
)

// lockedBy names the other processes that have the lock file open. It names none
// if /proc is not available.
func lockedBy(lock *os.File) []string {
	info, err := lock.Stat()
	if err != nil {
		return []string{"an unknown process"}
	}
	links, err := filepath.Glob(filepath.Join(procFolder, "[0-9]*", "fd", "*"))
	if err != nil {
		return []string{"an unknown process"}
	}
	var pids []int
	for _, link := range links {
		pid := processOf(link)
		target, err := os.Stat(link)
		if err == nil && os.SameFile(info, target) && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return nameProcesses(slices.Compact(pids))
}

// processOf returns the process of a path such as /proc/7/fd/8.
func processOf(link string) int {
	pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(link))))
	if err != nil {
		return 0
	}
	return pid
}

func nameProcesses(pids []int) []string {
	if len(pids) == 0 {
		return []string{"an unknown process"}
	}
	var names []string
	for _, pid := range pids[:min(len(pids), maxNamed)] {
		name := "process " + strconv.Itoa(pid)
		if command, err := os.ReadFile(filepath.Join(procFolder, strconv.Itoa(pid), "comm")); err == nil {
			name += fmt.Sprintf(" (%s)", script.Clean([]byte(strings.TrimSpace(string(command)))))
		}
		names = append(names, name)
	}
	if more := len(pids) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return names
}
