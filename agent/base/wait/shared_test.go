package wait_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
)

// nth is the result of a call: which one it was.
type nth int

func (n nth) Error() string { return fmt.Sprintf("call %d", int(n)) }

// TestShared checks that callers share calls, that no result is older than its question, and
// that a caller who leaves does not end the call of the others.
func TestShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, cancelled := 0, 0
		s := wait.NewShared(func(ctx context.Context) error {
			calls++
			n := nth(calls)
			if err := wait.Sleep(ctx, time.Second); err != nil {
				cancelled++
				return err
			}
			return n
		})
		ask := func(ctx context.Context, many int) <-chan error {
			answers := make(chan error, many)
			for range many {
				go func() { answers <- s.Do(ctx) }()
			}
			synctest.Wait()
			return answers
		}
		expect := func(answers <-chan error, want error) {
			t.Helper()
			for range cap(answers) {
				if err := <-answers; !errors.Is(err, want) {
					t.Errorf("a caller gets %v, want %v", err, want)
				}
			}
		}
		first := ask(t.Context(), 1)
		later := ask(t.Context(), 1000) // The first call is in progress.
		impatient, leave := context.WithCancel(t.Context())
		left := ask(impatient, 1)
		leave()
		expect(left, context.Canceled)
		expect(first, nth(1))
		expect(later, nth(2))
		expect(ask(t.Context(), 1), nth(3))
		if calls != 3 || cancelled != 0 {
			t.Errorf("%d calls were made, %d of them cancelled", calls, cancelled)
		}
		impatient, leave = context.WithCancel(t.Context())
		alone := ask(impatient, 1)
		soon, leaveSoon := context.WithCancel(t.Context())
		waiting := ask(soon, 10)
		leaveSoon()
		expect(waiting, context.Canceled)
		leave()
		expect(alone, context.Canceled)
		synctest.Wait()
		if calls != 4 || cancelled != 1 {
			t.Errorf("nobody waits any more, and %d calls were made, %d of them cancelled", calls, cancelled)
		}
		expect(ask(t.Context(), 1), nth(5))
	})
}
