package audit

import (
	"testing"
	"time"
)

// TestLimit checks how many records a sender has, that it is told how many were left out,
// and that no sender limits another.
func TestLimit(t *testing.T) {
	t.Parallel()
	var l Limit
	now := time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)
	count := func(name string, times int) (kept, omitted int) {
		for range times {
			keep, left := l.Keep(name, now)
			if keep {
				kept++
			}
			omitted += left
		}
		return kept, omitted
	}
	for _, row := range []struct {
		name          string
		later         time.Duration
		times         int
		kept, omitted int
	}{
		{"eve", 0, 50, maxEach, 0},
		{"ann", 0, 5, 5, 0},
		{"eve", limitEach - 1, 7, 0, 0},
		{"eve", 1, 3, 3, 37},
		{"eve", -2 * limitEach, 30, maxEach, 0},
	} {
		now = now.Add(row.later)
		if kept, omitted := count(row.name, row.times); kept != row.kept || omitted != row.omitted {
			t.Errorf("of %d of %s after %s, %d are kept and %d left out, not %d and %d", row.times, row.name, row.later, kept, omitted, row.kept, row.omitted)
		}
	}
}
