package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// matcher is a v1.Match that is made to decide about many hosts. A nil matcher matches no host.
type matcher struct {
	v1.Matcher
	applications set
	match        *v1.Match
	// keys are the sorted keys of its labels.
	keys []string
}

type set map[string]struct{}

func compile(m *v1.Match) *matcher {
	if m == nil {
		return nil
	}
	return &matcher{v1.Selector{Hosts: m.Hosts, Labels: m.Labels, Roles: m.Roles}.Matcher(), newSet(m.Applications), m, slices.Sorted(maps.Keys(m.Labels))}
}

// Fits returns what reports whether a match fits a host, whatever else matches that host.
func Fits(m v1.Match) func(Host) bool { return compile(&m).matches }

func newSet(list []string) set {
	s := make(set, len(list))
	for _, entry := range list {
		s[entry] = struct{}{}
	}
	return s
}

// fits reports whether the set has the text. Every text fits an empty set.
func (s set) fits(text string) bool {
	_, has := s[text]
	return has || len(s) == 0
}

// matches reports whether the host fits each member of the match.
func (m *matcher) matches(h Host) bool {
	return m != nil && m.Fits(h.Name, h.Role, h.Environment, h.Labels) && m.applications.fits(h.Application)
}

// words names the properties of a host that match.
func (m *matcher) words(h Host) string {
	var parts []string
	if len(m.match.Hosts) > 0 {
		parts = append(parts, "its name")
	}
	for _, key := range m.keys {
		parts = append(parts, "label "+key+"="+m.match.Labels[key])
	}
	if len(m.match.Roles) > 0 {
		parts = append(parts, "role "+h.Role)
	}
	if len(m.applications) > 0 {
		parts = append(parts, "application "+h.Application)
	}
	if len(parts) == 0 {
		return "every host"
	}
	return strings.Join(parts, " and ")
}
