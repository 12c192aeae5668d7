package window

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestClosest(t *testing.T) {
	t.Parallel()
	keys := []string{"days-of-week", "start-time", "timezone", "duration", "match"}
	for _, row := range []struct{ name, text, want string }{
		{"letter missing", "start-tme", "start-time"},
		{"letter too many", "durations", "duration"},
		{"letters swapped", "tiemzone", "timezone"},
		{"letters of a short one swapped", "macth", "match"},
		{"other sign", "start_time", "start-time"},
		{"other case", "Duration", "duration"},
		{"beginning", "days", "days-of-week"},
		{"far from all", "colour", ""},
		{"empty", "", ""},
		{"one letter", "d", ""},
		{"endless", strings.Repeat("duration", 9), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got, ok := Closest(row.text, keys); got != row.want || ok != (row.want != "") {
				t.Fatalf("Closest(%q) = %q, %v; want %q", row.text, got, ok, row.want)
			}
		})
	}
}

func TestDistanceIsAMetric(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[a-c]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		ab, ba := distance(a, b), distance(b, a)
		if ab != ba || (ab == 0) != (a == b) || ab > distance(a, c)+distance(c, b) || ab > max(len(a), len(b)) {
			t.Fatalf("%q %q: %d and %d", a, b, ab, ba)
		}
	})
}
