package plan

import (
	"maps"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Membership decides which environment each host is in, by what is declared of them.
type Membership struct {
	matches map[string]*matcher
	// named are the environments that name a host, labeled those that want a label of some value,
	// others those that do neither.
	named   map[string][]string
	labeled map[label][]string
	others  []string
}

type label struct{ key, value string }

// NewMembership makes the Membership of environments, given by name.
func NewMembership(declared map[string]v1.Environment) *Membership {
	m := &Membership{matches: map[string]*matcher{}, named: map[string][]string{}, labeled: map[label][]string{}}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		match := declared[name].Match
		compiled := compile(&match)
		m.matches[name] = compiled
		switch {
		case len(match.Hosts) > 0:
			for host := range newSet(match.Hosts) {
				m.named[host] = append(m.named[host], name)
			}
		case len(match.Labels) > 0:
			first := compiled.keys[0]
			of := label{first, match.Labels[first]}
			m.labeled[of] = append(m.labeled[of], name)
		default:
			m.others = append(m.others, name)
		}
	}
	return m
}

// Place is where a host belongs.
type Place struct {
	// Environment is empty for default.
	Environment string
	// Unplaced tells that the host is in no environment, so that nobody upgrades it.
	Unplaced bool
	// Matching are the environments that match the host when there are several, by name.
	Matching []string
}

// Of returns where a host belongs that was somewhere before; was is nil for one that is new. Of
// several environments that match it none counts: it stays where it is, because to move it by the
// order of their names could upgrade it in its opening hours.
func (m *Membership) Of(h Host, was *Place) Place {
	matching := m.matching(h)
	switch {
	case len(matching) == 0:
		return Place{}
	case len(matching) == 1:
		return Place{Environment: matching[0]}
	case was == nil || was.Unplaced || was.Environment != "" && m.matches[was.Environment] == nil:
		return Place{Unplaced: true, Matching: matching}
	}
	return Place{Environment: was.Environment, Matching: matching}
}

// matching returns the environments that match a host, by name. Those that name it go before
// those that select it otherwise.
func (m *Membership) matching(h Host) (all []string) {
	fits := func(names []string) {
		for _, name := range names {
			if m.matches[name].matches(h) {
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
