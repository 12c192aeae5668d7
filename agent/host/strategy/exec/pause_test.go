package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
)

// helperLimit is the time limit that this test binary has as a worker.
const helperLimit = "EXEC_TEST_HELPER_LIMIT"

// pauses is how often a test makes two events ready at once: select chooses either.
const pauses = 20

// TestWorkerStoppedAcrossTheLimit stops a worker during an upgrade and continues it
// after the script has ended and the timeout has expired: a successful upgrade must
// not count as overdue, because it would be rolled back.
func TestWorkerStoppedAcrossTheLimit(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second
	h := newHost(t, map[string]string{"upgrade": `echo begun >"$WORK/begun"; read x <"$WORK/go"; echo upgraded >"$WORK/effect"`})
	h.pipe("begun")
	h.pipe("go")
	worker := osexec.Command(os.Args[0])
	worker.Env = append(os.Environ(), helperFolder+"="+h.dir, helperLimit+"="+limit.String())
	worker.Stderr = t.Output()
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	h.hear("begun")
	signal(t, worker, syscall.SIGSTOP)
	time.Sleep(limit)
	h.say("go", "on")
	for _, err := os.Stat(h.path("effect")); errors.Is(err, os.ErrNotExist); _, err = os.Stat(h.path("effect")) {
		time.Sleep(10 * time.Millisecond)
	}
	signal(t, worker, syscall.SIGCONT)
	if err := worker.Wait(); err != nil {
		t.Errorf("the worker ended with %v", err)
	}
}

func signal(t *testing.T, worker *osexec.Cmd, number syscall.Signal) {
	t.Helper()
	if err := worker.Process.Signal(number); err != nil {
		t.Fatal(err)
	}
}

// TestEndAndLimitAreNewsAtOnce checks that the end of a script counts even if its
// timeout or the context of the call has expired too.
func TestEndAndLimitAreNewsAtOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{"upgrade": "echo upgraded"})
	over := make(chan time.Time)
	close(over)
	h.opts.After = func(time.Duration) <-chan time.Time { return over }
	s := h.open()
	for i := range pauses {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%2)*time.Hour)
		if err := endedBefore(ctx, s); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
}

// endedBefore supervises a script that has ended before.
func endedBefore(ctx context.Context, s *Strategy) error {
	lock, err := s.openLock()
	if err != nil {
		return err
	}
	out, err := s.openOutput(call{action: actionUpgrade, job: job()}, lock)
	if err != nil {
		return err
	}
	p, err := s.start(call{action: actionUpgrade, job: job()}, "", lock, out)
	if err != nil {
		return err
	}
	<-p.Exited
	return errors.Join(s.supervise(ctx, actionUpgrade, p, lock, out), out.close(), ignoreClosed(lock.Close()))
}

// TestReleaseAndLimitAreNewsAtOnce checks that a wait for an earlier script succeeds
// if that script has ended, even if the timeout of the wait has expired too.
func TestReleaseAndLimitAreNewsAtOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{"resume": "exit 10"})
	for range pauses {
		earlier, err := h.open().openLock()
		if err == nil {
			err = flock(earlier, syscall.LOCK_EX)
		}
		if err != nil {
			t.Fatal(err)
		}
		first := true
		h.opts.After = func(time.Duration) <-chan time.Time {
			if !first {
				return nil
			}
			first = false
			// The wait for the lock, which begins now.
			over := make(chan time.Time, 1)
			over <- time.Time{}
			if err := earlier.Close(); err != nil {
				t.Error(err)
			}
			return over
		}
		if outcome, err := h.open().Resume(t.Context(), job()); outcome != strategy.RebootRequired || err != nil {
			t.Fatalf("resume: %v, %v", outcome, err)
		}
	}
}

// limitOfHelper is the time limit that a test gave the helper, or none.
func limitOfHelper() (time.Duration, error) {
	text := os.Getenv(helperLimit)
	if text == "" {
		return 0, nil
	}
	limit, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("cannot read %s: %w", helperLimit, err)
	}
	return limit, nil
}
