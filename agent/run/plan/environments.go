package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// ofEnvironments are the hosts that environments match, as far as warnings tell of them.
type ofEnvironments struct {
	// matched are the hosts by each environment that matches them or that they are assigned to.
	matched map[string][]Host
	// shared are those that several environments match, by the first of these that is declared.
	shared map[string][]sharedHost
	// all are the declared environments and those that are in force besides.
	all map[string]v1.Environment
}

// sharedHost is a host that several environments match, and where it is.
type sharedHost struct {
	name string
	Where
}

// environments returns the warnings about declared environments: hosts that several match, or a
// match, a stage or a calendar without any effect.
func (u *unmatched) environments(declared map[string]v1.Environment) (found []v1.IntentWarning) {
	if len(declared) == 0 {
		return nil
	}
	of := u.sortOut(declared)
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		e := declared[name]
		if len(u.Hosts) > 0 {
			u.chosen(e, of.matched[name])
			u.share(name, of.shared[name])
		}
		u.calendars(e.Calendars)
		u.after(e.After, of.all)
		if hosts := of.matched[name]; e.Rollout != nil && len(hosts) > 0 {
			u.stages(*e.Rollout, hosts)
		}
		found = append(found, u.warnings(v1.EnvironmentObject(name))...)
	}
	if more := len(found) - maxUnmatched; len(declared) > 1 && more > 0 {
		found = append(found[:maxUnmatched], v1.IntentWarning{Object: v1.EnvironmentsObject, Text: text.Count(more, "further warning", "further warnings")})
	}
	return found
}

// sortOut finds the hosts of the declared environments, next to those that are in force besides.
func (u *unmatched) sortOut(declared map[string]v1.Environment) ofEnvironments {
	all := map[string]v1.Environment{}
	if u.InForce != nil {
		maps.Copy(all, u.InForce.Environments)
	}
	maps.Copy(all, declared)
	m := NewMembership(all)
	of := ofEnvironments{matched: map[string][]Host{}, shared: map[string][]sharedHost{}, all: all}
	for _, h := range u.Hosts {
		var was *Where
		if at, known := u.Where[h.Name]; known {
			was = &at
		}
		at := m.Of(h, was)
		names := at.Matching
		if len(names) == 0 {
			names = []string{at.Environment}
		}
		first := true
		for _, name := range names {
			if _, is := declared[name]; !is {
				continue
			}
			of.matched[name] = append(of.matched[name], h)
			if first && len(names) > 1 {
				of.shared[name] = append(of.shared[name], sharedHost{h.Name, at})
			}
			first = false
		}
	}
	return of
}

// chosen warns of a match that no host fits, and of one whose hosts are all in other environments.
func (u *unmatched) chosen(e v1.Environment, has []Host) {
	if len(has) > 0 {
		u.entries("match", &e.Match)
		return
	}
	before := len(u.found)
	u.match("match", &e.Match, make([]bool, len(u.Hosts)))
	if len(u.found) > before {
		return
	}
	var elsewhere []string
	matcher := compile(&e.Match)
	for _, h := range u.Hosts {
		if matcher.matches(h) {
			elsewhere = append(elsewhere, h.Name)
		}
	}
	slices.Sort(elsewhere)
	u.add("match", "no host is left for it: each known host that it matches is named by another environment or assigned to one (%s)", text.List(elsewhere, mostShown))
}

// share warns of the hosts that other environments match, too.
func (u *unmatched) share(name string, hosts []sharedHost) {
	type group struct{ others, is string }
	groups := map[group][]string{}
	for _, h := range hosts {
		others := slices.DeleteFunc(slices.Clone(h.Matching), func(other string) bool { return other == name })
		g := group{others: text.List(others, mostShown)}
		if !h.Unplaced {
			g.is = nameOf(h.Environment)
		}
		groups[g] = append(groups[g], h.name)
	}
	for _, g := range slices.SortedFunc(maps.Keys(groups), func(a, b group) int { return strings.Compare(a.others+" "+a.is, b.others+" "+b.is) }) {
		names := groups[g]
		slices.Sort(names)
		what := "so no run upgrades " + them(names)
		if g.is != "" {
			what = fmt.Sprintf("so %s in environment %s", stay(names), g.is)
		}
		u.add("match", "%s %s %s, too (%s), %s; change one of the matches, or type osupgrade-agent move HOST --environment NAME", g.others, matches(g.others), text.Count(len(names), "host", "hosts"), text.List(names, mostShown), what)
	}
}

func matches(environments string) string {
	if strings.Contains(environments, " ") {
		return "match"
	}
	return "matches"
}

func them(hosts []string) string {
	if len(hosts) == 1 {
		return "it"
	}
	return "them"
}

func stay(hosts []string) string {
	if len(hosts) == 1 {
		return "it stays"
	}
	return "they stay"
}

// nameOf is the name of an environment for people.
func nameOf(environment string) string {
	if environment == "" {
		return v1.DefaultEnvironment
	}
	return environment
}

// calendars warns of calendars that open no window for an environment that names them.
func (u *unmatched) calendars(named []string) {
	if u.Calendars == nil {
		return
	}
	for n, name := range named {
		field := fmt.Sprintf("calendars[%d]", n)
		switch kind, exists := u.Calendars[name]; {
		case !exists && len(u.Calendars) == 0:
			u.add(field, "there is no calendar %q, or any other, so it opens no window", name)
		case !exists:
			u.add(field, "there is no calendar %q, so it opens no window; there are %s", name, text.List(slices.Sorted(maps.Keys(u.Calendars)), mostShown))
		case kind == string(calendar.Freeze):
			u.add(field, "calendar %q is of kind freeze: it counts for every environment and opens no window; name calendars of kind allow", name)
		}
	}
}

// after warns of names in after that nobody has declared: the environment opens no run until they
// are.
func (u *unmatched) after(after *v1.After, all map[string]v1.Environment) {
	if after == nil {
		return
	}
	for n, name := range after.Environments {
		if _, declared := all[name]; !declared && name != v1.DefaultEnvironment {
			u.add(fmt.Sprintf("after.environments[%d]", n), "there is no environment %q, so no window opens a run before it is declared", name)
		}
	}
}

// stages warns of what in the rollout of an environment none of its hosts has.
func (u *unmatched) stages(r v1.Rollout, hosts []Host) {
	known := u.Known
	known.Hosts = hosts
	of := newUnmatched(known)
	of.who = "host of the environment"
	of.rollout(r.WithDefaults())
	for _, w := range of.found {
		u.add("rollout."+w.Field, "%s", w.Text)
	}
}
