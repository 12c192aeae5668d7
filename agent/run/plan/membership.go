package plan

import (
	"maps"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Membership decides which environment each host is in, by what is declared of them. It is no use to
// several goroutines at once: a match is compiled when a host is first compared with it, as few of a
// thousand are.
type Membership struct {
	matches  map[string]v1.Match
	compiled map[string]*matcher
	// named are the environments that name a host, labeled those that want a label of some value,
	// others those that do neither.
	named   map[string][]string
	labeled map[label][]string
	others  []string
}

type label struct{ key, value string }

// NewMembership makes the Membership of environments, given by name.
func NewMembership(declared map[string]v1.Environment) *Membership {
	m := &Membership{matches: make(map[string]v1.Match, len(declared)), compiled: map[string]*matcher{}, named: map[string][]string{}, labeled: map[label][]string{}}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		m.Set(name, new(declared[name].Match))
	}
	return m
}

// Set puts what an environment matches in place of what it matched before; nil when it is not declared
// any more. What that costs does not grow with the other environments.
func (m *Membership) Set(name string, match *v1.Match) {
	if before, declared := m.matches[name]; declared {
		m.file(name, before, without)
		delete(m.matches, name)
		delete(m.compiled, name)
	}
	if match != nil {
		m.matches[name] = *match
		m.file(name, *match, with)
	}
}

// file changes the lists in which an environment is found by what it matches.
func (m *Membership) file(name string, match v1.Match, change func(names []string, name string) []string) {
	switch {
	case len(match.Hosts) > 0:
		for host := range newSet(match.Hosts) {
			m.named[host] = change(m.named[host], name)
		}
	case len(match.Labels) > 0:
		first := slices.Min(slices.Collect(maps.Keys(match.Labels)))
		of := label{first, match.Labels[first]}
		m.labeled[of] = change(m.labeled[of], name)
	default:
		m.others = change(m.others, name)
	}
}

// with adds a name to a sorted list.
func with(names []string, name string) []string {
	at, _ := slices.BinarySearch(names, name)
	return slices.Insert(names, at, name)
}

// without removes a name from a list.
func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(other string) bool { return other == name })
}

// Where is in which environment a host is.
type Where struct {
	// Environment is empty for default.
	Environment string
	// Unplaced tells that the host is in no environment, so that nobody upgrades it.
	Unplaced bool
	// Matching are the environments that match the host when there are several, by name.
	Matching []string
	// Assigned is the environment that somebody has moved the host to, by its name for people; empty
	// when that follows from what matches it.
	Assigned string
}

// Of returns where a host belongs. was is where it was before; nil for a new host. A host that
// somebody has moved stays there as long as that environment exists. If several environments match
// a host, it stays where it is: a choice by the order of their names could upgrade a shop during its
// opening hours.
func (m *Membership) Of(h Host, was *Where) Where {
	if was != nil && m.has(was.Assigned) {
		return Where{Environment: onLog(was.Assigned), Assigned: was.Assigned}
	}
	matching := m.Matching(h)
	switch {
	case len(matching) == 0:
		return Where{}
	case len(matching) == 1:
		return Where{Environment: matching[0]}
	case was == nil || was.Unplaced || was.Environment != "" && !m.has(was.Environment):
		return Where{Unplaced: true, Matching: matching}
	}
	return Where{Environment: was.Environment, Matching: matching}
}

// has reports whether there is an environment, by its name for people.
func (m *Membership) has(name string) bool {
	_, declared := m.matches[name]
	return name == v1.DefaultEnvironment || declared
}

// match is the match of a declared environment.
func (m *Membership) match(name string) *matcher {
	if m.compiled[name] == nil {
		m.compiled[name] = compile(new(m.matches[name]))
	}
	return m.compiled[name]
}

// onLog is the name of an environment on the log.
func onLog(name string) string {
	if name == v1.DefaultEnvironment {
		return ""
	}
	return name
}

// Matching returns the environments that match a host, by name. Those that name it go before
// those that select it otherwise.
func (m *Membership) Matching(h Host) (all []string) {
	fits := func(names []string) {
		for _, name := range names {
			if m.match(name).matches(h) {
				all = append(all, name)
			}
		}
	}
	if fits(m.named[h.Name]); len(all) > 0 {
		return all
	}
	for key, value := range h.Labels {
		fits(m.labeled[label{key, value}])
	}
	fits(m.others)
	slices.Sort(all)
	return all
}
