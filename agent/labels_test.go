package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

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
		"no value":        {[]string{"canary"}, nil, `label: "canary" is not possible; use key=value`},
		"no key":          {[]string{"=0"}, nil, `label: "=0" is not possible`},
		"a blank":         {[]string{"ring =0"}, nil, `label: "ring =0" is not possible`},
		"two values":      {[]string{"ring=0=1"}, nil, `label: "ring=0=1" is not possible`},
		"a key twice":     {[]string{"ring=0", "ring=1"}, nil, `label: "ring" stands there twice, as "0" and as "1"`},
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
