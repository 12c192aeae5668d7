package main

import (
	"testing"
	"time"
)

// TestLength checks that a flag takes the durations of the product, and those
// of Go beside them, and that what it prints is the same again.
func TestLength(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		d       time.Duration
		printed string
	}{
		"1d":     {24 * time.Hour, "1d"},
		"1h0m0s": {time.Hour, "1h"},
		"90m":    {90 * time.Minute, "1h30m"},
		"0s":     {0, "0s"},
		"500ms":  {500 * time.Millisecond, "500ms"},
		"1.5h":   {90 * time.Minute, "1h30m"},
	} {
		var l, again length
		if err := l.UnmarshalText([]byte(text)); err != nil || time.Duration(l) != want.d || l.String() != want.printed {
			t.Errorf("%s is %s (%v), not %s", text, l, err, want.d)
		}
		if err := again.UnmarshalText([]byte(l.String())); err != nil || again != l {
			t.Errorf("%s printed and read is %s (%v)", l, again, err)
		}
	}
	for _, text := range []string{"", "1", "-1s", "1w", "1d-2h"} {
		var l length
		if err := l.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %s", text, l)
		}
	}
}
