package release

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Target says to which release the runs of an environment go: to one that it names, or to one that is
// made when a run is opened. It has at most one of the two. With neither, the environment goes where
// the configuration of the tenant says, and without that each host decides what it installs.
type Target struct {
	// Releases are the names of releases by their component, which is os: what the runs install.
	Releases map[string]string `json:"releases,omitempty"`
	// Follow makes the release of each run, of packages that are old enough.
	Follow *Follow `json:"follow,omitempty"`
}

// Follow makes a release of packages that are old enough.
type Follow struct {
	// Select is all (also if absent) or security.
	Select string `json:"select,omitempty"`
	// Age is how old packages must be, such as 7d, counted from the beginning of a day (UTC); "0s", also
	// if absent, is what the repositories of a host have.
	Age string `json:"age,omitempty"`
}

const day = 24 * time.Hour

// MaxAge bounds the age of packages.
const MaxAge = 365 * day

// Validate returns everything that is wrong with the values, and nothing when all is right.
func (t Target) Validate() document.Problems {
	var found document.Problems
	for component, name := range t.Releases {
		switch {
		case component != OS:
			found = append(found, document.Wrong(memberOf("releases", component), name, "is for a component that is reserved; use os"))
		case !names.Valid(name):
			found = append(found, document.Wrong("releases.os", name, "is not the name of a release; "+names.Form))
		}
	}
	if t.Follow == nil {
		return found
	}
	if len(t.Releases) > 0 {
		found = append(found, document.Problem{Field: "follow", Message: "releases are named, too; give only one of them"})
	}
	if s := t.Follow.Select; s != "" && s != All && s != Security {
		found = append(found, document.NoneOf("follow.select", s, All, Security))
	}
	if _, err := t.Follow.age(); err != nil {
		found = append(found, document.Problem{Field: "follow.age", Value: document.Clip(t.Follow.Age), Message: err.Error()})
	}
	return found
}

// memberOf is the path of a key in a member.
func memberOf(member, key string) string {
	if names.Valid(key) {
		return member + "." + key
	}
	return fmt.Sprintf("%s[%q]", member, document.Clip(key))
}

// Canonical returns the value in its one spelling.
func (t Target) Canonical() Target {
	if len(t.Releases) == 0 {
		t.Releases = nil
	}
	if t.Follow != nil {
		f := *t.Follow
		if age, err := f.age(); err == nil && f.Age != "" {
			f.Age = window.FormatDuration(age)
		}
		t.Follow = &f
	}
	return t
}

// Named returns the name of the release that the environment names for the system of its hosts; empty
// if it names none.
func (t Target) Named() string { return t.Releases[OS] }

// Decides reports whether it names a release or follows.
func (t Target) Decides() bool { return len(t.Releases) > 0 || t.Follow != nil }

func (f Follow) age() (time.Duration, error) {
	if f.Age == "" {
		return 0, nil
	}
	return window.ParseDurationWithin(f.Age, 0, MaxAge)
}

// Followed returns the release of a run that is opened now, and its name, which says what it selects
// and as of when. until is when it becomes another one; zero for never.
func Followed(follow Follow, now time.Time) (name string, r Release, until time.Time) {
	packages := Packages{Select: follow.Select}
	if packages.Select == "" {
		packages.Select = All
	}
	name = packages.Select
	if age, err := follow.age(); err == nil && age > 0 {
		// To the day, so that all runs and offers of a day are of the same release.
		packages.AsOf = now.Add(-age).UTC().Truncate(day)
		name += packages.AsOf.Format("-20060102")
		until = packages.AsOf.Add(day + age)
	}
	return name, Release{Packages: &packages}.WithDefaults(), until
}
