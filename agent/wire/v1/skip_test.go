package v1

import (
	"slices"
	"testing"
	"time"
)

// TestSkips checks that a window is skipped once, by its start, and which of them are kept.
func TestSkips(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Date(2026, 11, n, 1, 0, 0, 0, time.UTC) }
	window := func(n int) SkippedWindow {
		return SkippedWindow{Start: day(n), End: day(n).Add(time.Hour), Reason: "sale"}
	}
	days := func(s Skips) (all []int) {
		for _, w := range s.Windows {
			all = append(all, w.Start.Day())
		}
		return all
	}
	var s Skips
	for _, n := range []int{3, 1, 2, 2} {
		next, added := s.With(window(n), day(1))
		if added == (s.Of(day(n)) != nil) {
			t.Errorf("day %d: added %t", n, added)
		}
		s = next
	}
	if got := days(s); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("these days are skipped: %v", got)
	}
	if s.Of(day(2).Add(time.Minute)) != nil || (*Skips)(nil).Of(day(2)) != nil {
		t.Error("a window that begins later is skipped, too")
	}
	for _, row := range []struct {
		start, now time.Time
		want       []int
		found      bool
	}{
		{time.Time{}, day(1), []int{2, 3}, true},
		{time.Time{}, day(1).Add(time.Hour), []int{1, 3}, true},
		{day(3), day(1), []int{1, 2}, true},
		{day(1), day(2), []int{1, 2, 3}, false},
		{day(4), day(1), []int{1, 2, 3}, false},
	} {
		got, taken := s.Without(row.start, row.now)
		if (taken != nil) != row.found || !slices.Equal(days(got), row.want) || taken != nil && got.Of(taken.Start) != nil {
			t.Errorf("without %s at %s: %v, %+v", row.start, row.now, days(got), taken)
		}
	}
	s = Skips{}
	for n := range 15 {
		s, _ = s.With(window(n+1), day(20))
	}
	if got := days(s); !slices.Equal(got, []int{6, 7, 8, 9, 10, 11, 12, 13, 14, 15}) {
		t.Errorf("of those long over these are kept: %v", got)
	}
}

// TestDecodeSkipWindow checks what the body of such a request may not be.
func TestDecodeSkipWindow(t *testing.T) {
	t.Parallel()
	for body, problem := range map[string]string{
		`{"reason":"sale"}`: "",
		`{"environment":"shops","window-start":"2026-11-29T01:00:00Z","reason":"sale"}`: "",
		`{}`: `reason: "" is empty; it is shown with the window`,
		`{"environment":"Shops","reason":"sale"}`:     `environment: "Shops" is not the name of an environment; `,
		`{"window-start":"tomorrow","reason":"sale"}`: `window-start: "tomorrow" is not a time; write it as in 2026-11-29T01:00:00Z`,
	} {
		_, err := DecodeSkipWindow(inJSON, []byte(body))
		if got := errText(err); got != problem && (problem == "" || len(got) < len(problem) || got[:len(problem)] != problem) {
			t.Errorf("%s: %q; want %q", body, got, problem)
		}
	}
}
