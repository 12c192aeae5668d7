package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// TestShared checks that callers share calls, that no result is older than its question, and
// that who waits no longer does not end the call of the others.
func TestShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, cancelled, failed := 0, 0, errors.New("the third call fails")
		s := wait.NewShared(func(ctx context.Context) (int, error) {
			calls++
			n := calls
			if err := wait.Sleep(ctx, time.Second); err != nil {
				cancelled++
				return 0, err
			}
			if n == 3 {
				return 0, failed
			}
			return n, nil
		})
		type got struct {
			n   int
			err error
		}
		ask := func(ctx context.Context, many int) <-chan got {
			answers := make(chan got, many)
			for range many {
				go func() {
					n, err := s.Get(ctx)
					answers <- got{n, err}
				}()
			}
			synctest.Wait()
			return answers
		}
		expect := func(answers <-chan got, want got) {
			t.Helper()
			for range cap(answers) {
				if g := <-answers; g.n != want.n || !errors.Is(g.err, want.err) {
					t.Errorf("a caller gets %+v, want %+v", g, want)
				}
			}
		}
		first := ask(t.Context(), 1)
		later := ask(t.Context(), 1000) // The first call is under way.
		impatient, leave := context.WithCancel(t.Context())
		left := ask(impatient, 1)
		leave()
		expect(left, got{err: context.Canceled})
		expect(first, got{n: 1})
		expect(later, got{n: 2})
		expect(ask(t.Context(), 1), got{err: failed})
		if calls != 3 || cancelled != 0 {
			t.Errorf("%d calls were made, %d of them cancelled", calls, cancelled)
		}
		impatient, leave = context.WithCancel(t.Context())
		alone := ask(impatient, 1)
		soon, leaveSoon := context.WithCancel(t.Context())
		waiting := ask(soon, 10)
		leaveSoon()
		expect(waiting, got{err: context.Canceled})
		leave()
		expect(alone, got{err: context.Canceled})
		synctest.Wait()
		if calls != 4 || cancelled != 1 {
			t.Errorf("nobody waits any more, and %d calls were made, %d of them cancelled", calls, cancelled)
		}
		expect(ask(t.Context(), 1), got{n: 5})
	})
}
