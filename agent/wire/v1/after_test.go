package v1

import (
	"fmt"
	"slices"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestAfter checks what the order of environments may not be, each with its path, and its canonical
// form.
func TestAfter(t *testing.T) {
	t.Parallel()
	many := make([]string, MaxAfter+1)
	for i := range many {
		many[i] = fmt.Sprint("e", i)
	}
	for name, row := range map[string]struct {
		after After
		wrong []string
	}{
		"one":              {After{Environments: []string{"canary"}, Soak: "24h"}, nil},
		"default, no soak": {After{Environments: []string{"default", "canary"}}, nil},
		"none":             {After{Soak: "24h"}, []string{"after.environments"}},
		"too many":         {After{Environments: many}, []string{"after.environments"}},
		"no name":          {After{Environments: []string{"canary", "Canary"}}, []string{"after.environments[1]"}},
		"one twice":        {After{Environments: []string{"canary", "canary"}}, []string{"after.environments[1]"}},
		"soak is no time":  {After{Environments: []string{"canary"}, Soak: "a day"}, []string{"after.soak"}},
		"soak is too long": {After{Environments: []string{"canary"}, Soak: "31d"}, []string{"after.soak"}},
		"soak is negative": {After{Environments: []string{"canary"}, Soak: "-1h"}, []string{"after.soak"}},
	} {
		var fields []string
		for _, p := range (Environment{Match: Match{Roles: []string{"web"}}, After: &row.after}).Validate() {
			fields = append(fields, p.Field)
		}
		if !slices.Equal(fields, row.wrong) {
			t.Errorf("%s: these are wrong: %q; want %q", name, fields, row.wrong)
		}
	}
	for given, want := range map[rollout.Span]rollout.Span{"24h": "1d", "90m": "1h30m", "0s": "", "": ""} {
		after := After{Environments: []string{"edge", "canary"}, Soak: given}
		if got := after.canonical(); got.Soak != want || !slices.Equal(got.Environments, []string{"canary", "edge"}) {
			t.Errorf("the canonical form of %+v is %+v", after, got)
		}
	}
}

// TestCycle checks that a cycle is found from each environment on it, and from no other.
func TestCycle(t *testing.T) {
	t.Parallel()
	after := func(names ...string) Environment { return Environment{After: &After{Environments: names}} }
	all := map[string]Environment{
		"canary": {}, "a": after("canary", "b"), "b": after("c", "gone"), "c": after("a", "default"), "self": after("self"), "behind": after("a"),
	}
	for name, want := range map[string][]string{
		"a": {"a", "b", "c", "a"}, "b": {"b", "c", "a", "b"}, "c": {"c", "a", "b", "c"}, "self": {"self", "self"}, "behind": nil, "canary": nil, "gone": nil, "default": nil,
	} {
		if got := Cycle(all, name); !slices.Equal(got, want) {
			t.Errorf("the cycle of %s is %q; want %q", name, got, want)
		}
	}
}
