package times

import (
	"testing"
	"time"
)

// TestTimes compares two times, of which one may be zero.
func TestTimes(t *testing.T) {
	t.Parallel()
	none, one, two := time.Time{}, time.Unix(1, 0), time.Unix(2, 0)
	for _, c := range []struct{ a, b, later, earlier, sooner time.Time }{
		{one, two, two, one, one},
		{one, one, one, one, one},
		{none, two, two, none, two},
		{none, none, none, none, none},
	} {
		for _, pair := range [][2]time.Time{{c.a, c.b}, {c.b, c.a}} {
			a, b := pair[0], pair[1]
			if Later(a, b) != c.later || Earlier(a, b) != c.earlier || Sooner(a, b) != c.sooner {
				t.Errorf("of %v and %v the later is %v, the earlier %v, the sooner %v", a, b, Later(a, b), Earlier(a, b), Sooner(a, b))
			}
		}
	}
}
