package cli

import (
	"fmt"
	"maps"
	"strings"
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

// TestParseLabels checks what a label may be, and that a person is told what
// would be right.
func TestParseLabels(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 51 {
		many = append(many, fmt.Sprintf("k%d=v", i))
	}
	for name, c := range map[string]struct {
		texts []string
		want  map[string]string
		err   string
	}{
		"none":            {nil, map[string]string{}, ""},
		"two":             {[]string{"ring=0", "example.com/zone=eu-1"}, map[string]string{"ring": "0", "example.com/zone": "eu-1"}, ""},
		"an empty value":  {[]string{"canary="}, map[string]string{"canary": ""}, ""},
		"no value":        {[]string{"canary"}, nil, `label: "canary" is invalid; use key=value`},
		"no key":          {[]string{"=0"}, nil, `label: "=0" is invalid`},
		"a blank":         {[]string{"ring =0"}, nil, `label: "ring =0" is invalid`},
		"two values":      {[]string{"ring=0=1"}, nil, `label: "ring=0=1" is invalid`},
		"a key twice":     {[]string{"ring=0", "ring=1"}, nil, `label: "ring" is given twice, as "0" and as "1"`},
		"a key too long":  {[]string{strings.Repeat("a", 64) + "=0"}, nil, "at most 63 of letters"},
		"more than there": {many, nil, "label: 51 are too many; use at most 50"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseLabels(c.texts)
			if !maps.Equal(got, c.want) {
				t.Errorf("%v, not %v", got, c.want)
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("the error is %v, not %q", err, c.err)
			}
		})
	}
}
