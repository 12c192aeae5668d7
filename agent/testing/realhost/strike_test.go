package realhost_test

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// failing notes that a test would have failed.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Helper()               {}
func (f *failing) Logf(string, ...any)   {}
func (f *failing) Fatalf(string, ...any) { f.failed = true }

// TestStrike repeats an attack until it has struck, and fails if it never does.
func TestStrike(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		times    int
		late     func(n int) bool
		attempts int
		fails    bool
	}{
		"each strikes":             {3, func(int) bool { return false }, 3, false},
		"each second is too late":  {3, func(n int) bool { return n%2 == 0 }, 6, false},
		"none is wanted":           {0, func(int) bool { return true }, 0, false},
		"all come too late":        {1, func(int) bool { return true }, realhost.Attempts(1), true},
		"the last possible strike": {1, func(n int) bool { return n < realhost.Attempts(1)-1 }, realhost.Attempts(1), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &failing{TB: t}
			attempts := 0
			realhost.Strike(f, name, row.times, func(n int) bool {
				if n != attempts {
					t.Errorf("attempt %d is told as %d", attempts, n)
				}
				attempts++
				return !row.late(n)
			})
			if attempts != row.attempts || f.failed != row.fails {
				t.Errorf("%d attempts, failed %v; want %d, %v", attempts, f.failed, row.attempts, row.fails)
			}
		})
	}
}
