package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// matcher is a v1.Match with a set in place of each list, because a list may name
// every host of the fleet. A nil matcher matches no host.
type matcher struct {
	hosts, roles, applications set
	labels                     map[string]string
	// keys are the sorted keys of labels.
	keys []string
}

type set map[string]struct{}

func compile(m *v1.Match) *matcher {
	if m == nil {
		return nil
	}
	return &matcher{
		hosts: newSet(m.Hosts), roles: newSet(m.Roles), applications: newSet(m.Applications),
		labels: m.Labels, keys: slices.Sorted(maps.Keys(m.Labels)),
	}
}

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
	if m == nil || !m.hosts.fits(h.Name) || !m.roles.fits(h.Role) || !m.applications.fits(h.Application) {
		return false
	}
	for key, want := range m.labels {
		if got, has := h.Labels[key]; !has || got != want {
			return false
		}
	}
	return true
}

// words names the properties of a host that match.
func (m *matcher) words(h Host) string {
	var parts []string
	if len(m.hosts) > 0 {
		parts = append(parts, "its name")
	}
	for _, key := range m.keys {
		parts = append(parts, "label "+key+"="+m.labels[key])
	}
	if len(m.roles) > 0 {
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
