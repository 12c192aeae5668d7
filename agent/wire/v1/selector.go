package v1

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Selector chooses hosts as the match of a stage does: a host fits if it fits every member that
// is given, and the zero value fits every host. Commands have it as the flags --host, --label,
// --role and --environment, requests as query parameters of these names.
type Selector struct {
	// Hosts are names; one of them fits.
	Hosts []string
	// Labels maps keys to values, and all of them fit. A value may be several, joined by
	// commas, which no label has: then one of them fits.
	Labels map[string]string
	// Roles are roles; one of them fits.
	Roles []string
	// Environments are names; one of them fits. DefaultEnvironment is that of the hosts that no
	// other has.
	Environments []string
}

const (
	// MaxSelectorHosts bounds the hosts that a selector names, and maxSelectorRoles the roles;
	// MaxEnvironments the environments.
	MaxSelectorHosts = 1000
	maxSelectorRoles = 100
)

// ParseSelector reads a selector as a command or a query has it: each label is KEY=VALUE.
func ParseSelector(hosts, labels, roles, environments []string) (Selector, Problems) {
	s := Selector{Hosts: hosts, Roles: roles, Environments: environments}
	if len(labels) > 0 {
		s.Labels = map[string]string{}
	}
	for _, text := range labels {
		key, value, given := strings.Cut(text, "=")
		before, twice := s.Labels[key]
		switch {
		case !given:
			return s, Problems{document.Wrong("label", text, "is not a label; use KEY=VALUE, or KEY=VALUE,VALUE for one of several values")}
		case twice:
			return s, Problems{document.Wrong("label", text, fmt.Sprintf("gives a key twice, but a host has only one value for it; to choose either: %s=%s,%s", key, before, value))}
		}
		s.Labels[key] = value
	}
	return s, s.validateQuery()
}

// IsZero reports whether the selector chooses all hosts.
func (s Selector) IsZero() bool {
	return len(s.Hosts)+len(s.Labels)+len(s.Roles)+len(s.Environments) == 0
}

// OnlyHosts returns the selector without its environments, where these choose runs.
func (s Selector) OnlyHosts() Selector {
	s.Environments = nil
	return s
}

// Validate returns everything that is wrong with the values, and nothing when all is right. It
// names the members as the body of a request does.
func (s Selector) Validate() (found Problems) {
	for _, list := range []struct {
		field     string
		has, most int
	}{{"hosts", len(s.Hosts), MaxSelectorHosts}, {"labels", len(s.Labels), names.MaxLabels}, {"roles", len(s.Roles), maxSelectorRoles}, {"environments", len(s.Environments), MaxEnvironments}} {
		if list.has > list.most {
			return Problems{document.TooMany(list.field, list.has, list.most)}
		}
	}
	for i, name := range s.Hosts {
		if !names.ValidHost(name) {
			found = append(found, document.Wrong(fmt.Sprintf("hosts[%d]", i), name, "is not the name of a host"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		found = append(found, validateLabel("labels", key, s.Labels[key])...)
	}
	for i, role := range s.Roles {
		if !rollout.ValidRole(role) {
			found = append(found, document.Wrong(fmt.Sprintf("roles[%d]", i), role, "is not a role; "+rollout.RoleForm))
		}
	}
	for i, name := range s.Environments {
		if !names.Valid(name) {
			found = append(found, document.Wrong(fmt.Sprintf("environments[%d]", i), name, "is not the name of an environment; "+names.Form))
		}
	}
	return found
}

// validateQuery is Validate with the names of the query parameters.
func (s Selector) validateQuery() Problems {
	found := s.Validate()
	for i, p := range found {
		list, _, _ := strings.Cut(strings.ReplaceAll(p.Field, ".", "["), "[")
		found[i].Field = strings.TrimSuffix(list, "s")
	}
	return found
}

func validateLabel(field, key, value string) Problems {
	if !names.ValidLabel(key) {
		return Problems{document.Wrong(field, key, "is not the key of a label; "+rollout.LabelForm)}
	}
	values := strings.Split(value, ",")
	for _, v := range values {
		switch {
		case v == "" && len(values) > 1:
			return Problems{document.Wrong(rollout.LabelPath(field, key), value, "has a comma with no value next to it; use VALUE,VALUE for one of several")}
		case v != "" && !names.ValidLabel(v):
			return Problems{document.Wrong(rollout.LabelPath(field, key), v, "is not the value of a label; "+rollout.LabelForm)}
		}
	}
	return nil
}

// AddTo adds the selector to a query.
func (s Selector) AddTo(to url.Values) {
	for _, name := range s.Hosts {
		to.Add("host", name)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		to.Add("label", key+"="+s.Labels[key])
	}
	for _, role := range s.Roles {
		to.Add("role", role)
	}
	for _, name := range s.Environments {
		to.Add("environment", name)
	}
}

// mostTyped is how many hosts the text of a selector names.
const mostTyped = 3

// String returns the selector as flags of a command; of many hosts only the first.
func (s Selector) String() string {
	var flags []string
	for _, name := range s.Hosts[:min(len(s.Hosts), mostTyped)] {
		flags = append(flags, "--host "+name)
	}
	if len(s.Hosts) > mostTyped {
		flags = append(flags, "--host …")
	}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		flags = append(flags, "--label "+key+"="+s.Labels[key])
	}
	for _, role := range s.Roles {
		if strings.ContainsFunc(role, func(r rune) bool { return !isPlain(r) }) {
			role = "'" + strings.ReplaceAll(role, "'", `'\''`) + "'"
		}
		flags = append(flags, "--role "+role)
	}
	for _, name := range s.Environments {
		flags = append(flags, "--environment "+name)
	}
	return strings.Join(flags, " ")
}

// MatchesNone says that the selector chooses no host, and why.
func (s Selector) MatchesNone(why []IntentWarning) string {
	texts := make([]string, len(why))
	for i, w := range why {
		texts[i] = w.Text
	}
	return strings.TrimSuffix(fmt.Sprintf("no host matches %s: %s", s, strings.Join(texts, "; ")), ": ")
}

// isPlain reports whether a shell takes a character as it stands.
func isPlain(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:@+,", r)
}

// Matcher returns the decision of the selector about a host. It is made for many hosts: a
// selector may name every host of a fleet.
func (s Selector) Matcher() Matcher {
	m := Matcher{hosts: setOf(s.Hosts), roles: setOf(s.Roles), environments: setOf(s.Environments)}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		m.labels = append(m.labels, labelIn{key, strings.Split(s.Labels[key], ",")})
	}
	return m
}

// Matcher decides which hosts a selector chooses.
type Matcher struct {
	hosts, roles, environments map[string]struct{}
	labels                     []labelIn
}

// labelIn is a label that has one of some values.
type labelIn struct {
	key    string
	values []string
}

// Fits reports whether a host with a name, a role, an environment and labels is chosen. The
// environment is empty for a host that is in none.
func (m Matcher) Fits(name, role, environment string, labels map[string]string) bool {
	if !fits(m.hosts, name) || !fits(m.roles, role) || !fits(m.environments, environment) {
		return false
	}
	for _, want := range m.labels {
		if value, has := labels[want.key]; !has || !slices.Contains(want.values, value) {
			return false
		}
	}
	return true
}

func setOf(list []string) map[string]struct{} {
	set := make(map[string]struct{}, len(list))
	for _, entry := range list {
		set[entry] = struct{}{}
	}
	return set
}

// fits reports whether a set has a text. Every text fits an empty set.
func fits(set map[string]struct{}, text string) bool {
	_, has := set[text]
	return has || len(set) == 0
}
