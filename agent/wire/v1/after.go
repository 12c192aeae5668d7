package v1

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// MaxAfter is how many environments another one may come after.
const MaxAfter = 100

// MaxSoak is how long a run of another environment may have to soak.
const MaxSoak = 30 * 24 * time.Hour

// After says which environments an environment comes after. A window of it opens a run only if
// each of them has completed a run of all its hosts and that run has soaked. Each such run is followed
// at most once.
type After struct {
	// Environments are their names.
	Environments []string `json:"environments"`
	// Soak is how long ago they must have completed, such as 24h. Absent means 0s.
	Soak rollout.Span `json:"soak,omitempty"`
}

// validate returns everything that is wrong with the values.
func (a After) validate() Problems {
	var found Problems
	switch n := len(a.Environments); {
	case n == 0:
		found = append(found, Problem{Field: "after.environments", Message: "it is missing; name the environments that come before this one, or leave out after"})
	case n > MaxAfter:
		found = append(found, document.TooMany("after.environments", n, MaxAfter))
	}
	for i, name := range a.Environments {
		field := fmt.Sprintf("after.environments[%d]", i)
		switch {
		case !names.Valid(name):
			found = append(found, document.Wrong(field, name, "is not the name of an environment; "+names.Form))
		case slices.Contains(a.Environments[:i], name):
			found = append(found, document.Wrong(field, name, "is there twice; name each environment once"))
		}
	}
	if a.Soak != "" {
		if _, err := window.ParseDurationWithin(string(a.Soak), 0, MaxSoak); err != nil {
			found = append(found, Problem{Field: "after.soak", Value: document.Clip(string(a.Soak)), Message: err.Error()})
		}
	}
	return found
}

// canonical returns a copy in canonical form: the names in order, and a soak that is there and
// not 0.
func (a After) canonical() After {
	a.Environments = slices.Sorted(slices.Values(a.Environments))
	if d, err := window.ParseDuration(string(a.Soak)); err == nil {
		if a.Soak = rollout.SpanOf(d); d == 0 {
			a.Soak = ""
		}
	}
	return a
}

// Cycle returns the way from an environment over those that it comes after back to it, which begins
// and ends with its name; nil when there is none. No environment on such a way could ever be
// upgraded.
func Cycle(all map[string]Environment, name string) []string {
	visited := map[string]bool{}
	var search func(at string) []string
	search = func(at string) []string {
		after := all[at].After
		if after == nil || visited[at] {
			return nil
		}
		visited[at] = true
		for _, before := range slices.Sorted(slices.Values(after.Environments)) {
			if before == name {
				return []string{at, name}
			}
			if way := search(before); way != nil {
				return append([]string{at}, way...)
			}
		}
		return nil
	}
	return search(name)
}
