package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
)

// tries makes attempts from a source at once, each of which takes 0.9 seconds, and returns how
// many are made and how many are refused with a status.
func (a *attempts) tries(ctx context.Context, from string, count int, failed bool) (made int, refused map[int]int) {
	var mu sync.Mutex
	refused = map[int]int{}
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			err := a.try(ctx, from, func() (bool, error) {
				time.Sleep(900 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				made++
				return failed, nil
			})
			mu.Lock()
			defer mu.Unlock()
			var problem *answer
			switch {
			case errors.As(err, &problem):
				refused[problem.status]++
			case errors.Is(err, principal.ErrBusy):
				refused[http.StatusServiceUnavailable]++
			}
		})
	}
	all.Wait()
	return made, refused
}

// TestAttempts checks what counts as an attempt that has failed, for whom, and how long.
func TestAttempts(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		// before are attempts of before, after which a time passes.
		before, failed int
		passed         time.Duration
		from           string
		count          int
		fail           bool
		want           string
	}{
		"right ones that come together wait":              {count: 4 * maxAttempts, want: "40 map[]"},
		"wrong ones that come together are refused":       {count: 4 * maxAttempts, fail: true, want: "10 map[429:30]"},
		"right ones beside failed ones take turns":        {before: maxAttempts - 1, count: 4, want: "4 map[]"},
		"one that waits too long is told to come again":   {before: maxAttempts - 1, count: 8, want: "6 map[503:2]"},
		"after too many no right one is heard":            {before: maxAttempts, count: 1, want: "0 map[429:1]"},
		"another source is":                               {before: maxAttempts, from: "there", count: 1, want: "1 map[]"},
		"they are forgotten after a while":                {before: maxAttempts, passed: attemptsEach, count: 4 * maxAttempts, fail: true, want: "10 map[429:30]"},
		"not before":                                      {before: maxAttempts, passed: attemptsEach - 2*time.Second, count: 1, want: "0 map[429:1]"},
		"what has not failed does not count":              {failed: -1, before: 4 * maxAttempts, count: maxAttempts, fail: true, want: "10 map[]"},
		"one counts for the minute in which it has begun": {before: maxAttempts - 1, passed: attemptsEach - 1500*time.Millisecond, count: 2, fail: true, want: "2 map[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var a attempts
				a.tries(t.Context(), "here", row.before, row.failed == 0)
				time.Sleep(row.passed)
				from := "here"
				if row.from != "" {
					from = row.from
				}
				made, refused := a.tries(t.Context(), from, row.count, row.fail)
				if got := fmt.Sprint(made, " ", refused); got != row.want {
					t.Errorf("%s, and should be %s", got, row.want)
				}
			})
		})
	}
}

// TestAttemptsThatEndBadly checks that an attempt that panics counts as failed, that one
// whose sender is gone waits no longer, and that no source is remembered that has not failed.
func TestAttemptsThatEndBadly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var a attempts
		for range maxAttempts - 1 {
			func() {
				defer func() { _ = recover() }()
				_ = a.try(t.Context(), "here", func() (bool, error) { panic("a test") })
			}()
		}
		ctx, gone := context.WithCancel(t.Context())
		gone()
		begun := time.Now()
		err := a.try(t.Context(), "here", func() (bool, error) {
			return false, a.try(ctx, "here", func() (bool, error) { return false, nil })
		})
		if !errors.Is(err, principal.ErrBusy) || time.Since(begun) > 0 {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		for i := range 3 * maxSources {
			if err := a.try(t.Context(), fmt.Sprint(i), func() (bool, error) { return i%2 == 0, nil }); err != nil && len(a.sources) < maxSources {
				t.Fatal(err)
			}
		}
		if len(a.sources) != maxSources+1 {
			t.Errorf("%d sources are remembered", len(a.sources))
		}
		fails := func(from string) bool {
			return a.try(t.Context(), from, func() (bool, error) { return false, nil }) != nil
		}
		a.known = &principal.Sources{}
		a.known.Add("known")
		if !fails("unknown") || fails("known") {
			t.Error("beyond the sources that are counted, one that is known should be heard, and no other")
		}
	})
}
