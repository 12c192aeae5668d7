package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Intent is the part of what a tenant's operators declare that refers to hosts. What is nil
// is not looked at.
type Intent struct {
	Config  *v1.OSUpgrade
	Rollout *v1.Rollout
	// Environments are environments, by name.
	Environments map[string]v1.Environment
	Budgets      Budgets
	// Releases are releases, by name.
	Releases map[string]v1.Release
	// Selector is what somebody chooses hosts by in a request.
	Selector *v1.Selector
}

// Empty reports whether nothing is declared.
func (i Intent) Empty() bool {
	return i.Config == nil && i.Rollout == nil && len(i.Environments) == 0 && len(i.Budgets) == 0
}

// HasScripts reports whether a rollout may need scripts.
func (i Intent) HasScripts() bool {
	needs := func(r *v1.Rollout) bool {
		return r != nil && (r.Checks != nil || r.Hooks != nil || slices.ContainsFunc(r.Stages, func(s v1.Stage) bool { return s.Step != nil }))
	}
	for _, e := range i.Environments {
		if needs(e.Rollout) {
			return true
		}
	}
	return needs(i.Rollout)
}

// Known is what a site knows of a tenant's hosts.
type Known struct {
	Hosts []Host
	// OnHosts are the scripts for checks and hooks that some host has, AtSite those of the
	// site; nil when nobody can say.
	OnHosts, AtSite []string
	// InForce is what is in force besides, which a declared budget or rollout is compared with;
	// nil compares with nothing.
	InForce *Intent
	// Places are where the hosts are, by name; those that are not there are new.
	Where map[string]Where
	// Calendars are the kinds of the tenant's calendars, by name; nil when nobody can say.
	Calendars map[string]string
}

const (
	// maxUnmatched bounds the warnings about an object, mostShown the names in one.
	maxUnmatched = 20
	mostShown    = 5
)

// Unmatched returns a warning for each part of an intent that matches no known host, in the
// order of its members. Until a host is known, it warns only of what environments refer to:
// the hosts may be yet to come.
func Unmatched(i Intent, k Known) []v1.IntentWarning {
	u := newUnmatched(k)
	if len(k.Hosts) == 0 {
		return append(u.environments(i.Environments), drifting(i.Releases)...) // They may refer to calendars, too.
	}
	var found []v1.IntentWarning
	if i.Config != nil {
		u.config(*i.Config)
		found = u.warnings(v1.ConfigObject)
	}
	if i.Rollout != nil {
		u.rollout(i.Rollout.WithDefaults())
		found = append(found, u.warnings(v1.RolloutObject)...)
	}
	found = append(found, u.environments(i.Environments)...)
	if i.Selector != nil {
		u.selector(*i.Selector)
		found = append(found, u.warnings(v1.SelectorObject)...)
	}
	return slices.Concat(found, drifting(i.Releases), u.budgets(i))
}

// drifting warns of the releases of which hosts of one run may get different packages.
func drifting(releases map[string]v1.Release) (found []v1.IntentWarning) {
	for _, name := range slices.Sorted(maps.Keys(releases)) {
		if p := releases[name].Packages; p != nil && p.Drift() != "" {
			found = append(found, v1.IntentWarning{Object: v1.ReleaseObject(name), Field: "packages.as-of", Text: p.Drift()})
		}
	}
	return found
}

// unmatched collects the warnings about an object.
type unmatched struct {
	Known
	// who is what the texts call a host of those that are known.
	who string
	// names, roles and applications are what hosts have; names is nil until a match has some.
	names, roles, applications set
	found                      []v1.IntentWarning
}

func newUnmatched(k Known) *unmatched {
	u := &unmatched{Known: k, who: "known host", roles: set{}, applications: set{}}
	for _, h := range k.Hosts {
		u.roles.add(h.Role)
		u.applications.add(h.Application)
	}
	return u
}

// add adds a text; the empty one stands for none.
func (s set) add(text string) {
	if text != "" {
		s[text] = struct{}{}
	}
}

func (u *unmatched) add(field, format string, args ...any) {
	u.found = append(u.found, v1.IntentWarning{Field: field, Text: fmt.Sprintf(format, args...)})
}

// warnings returns what was found of an object, bounded: nobody reads more, and it travels
// in the header of an answer.
func (u *unmatched) warnings(object string) []v1.IntentWarning {
	found := u.found
	u.found = nil
	if more := len(found) - maxUnmatched; more > 0 {
		found = append(found[:maxUnmatched], v1.IntentWarning{Text: text.Count(more, "further part matches", "further parts match") + " no known host"})
	}
	for i := range found {
		found[i].Object = object
	}
	return found
}

// entry warns of a value that no host has.
func (u *unmatched) entry(field, value, what string, have set) {
	if _, has := have[value]; has {
		return
	}
	known := slices.Sorted(maps.Keys(have))
	closest, some := window.Closest(value, known)
	switch {
	case some:
		u.add(field, "no %s has %s %q; did you mean %s?", u.who, what, value, closest)
	case len(known) == 0:
		u.add(field, "no %s has %s %q, or any other", u.who, what, value)
	default:
		u.add(field, "no %s has %s %q; hosts have %s", u.who, what, value, text.List(known, mostShown))
	}
}

func (u *unmatched) config(c v1.OSUpgrade) {
	for n, a := range c.WorkerApplications {
		u.entry(fmt.Sprintf("worker-applications[%d].name", n), a.Name, "application", u.applications)
	}
}

func (u *unmatched) rollout(r v1.Rollout) {
	taken := make([]bool, len(u.Hosts))
	u.match("exempt", r.Exempt, taken)
	u.match("exempt-reboot", r.ExemptReboot, make([]bool, len(u.Hosts)))
	for n, s := range r.Stages {
		u.match(fmt.Sprintf("stages[%d].match", n), s.Match, taken)
		if s.Step != nil {
			u.match(fmt.Sprintf("stages[%d].step.match", n), s.Step.Match, make([]bool, len(u.Hosts)))
		}
	}
	for n, c := range r.Checks.Start {
		u.match(fmt.Sprintf("checks.start[%d].match", n), c.Match, make([]bool, len(u.Hosts)))
	}
	needs := func(where string) []need {
		return slices.Concat(needsOfDeclared(r.Checks.Start, where), needsOf(r, where), needsOfSteps(r.Stages, where))
	}
	u.scripts(needs(rollout.OnHost), u.OnHosts, "is not in the --checks folder of any known host")
	u.scripts(needs(rollout.OnSite), u.AtSite, "is not in the --checks folder of the site")
}

// match warns of what in a match no host has, or else of a match that no host has all of, or
// that gets no host because all were taken before. It takes those that match.
func (u *unmatched) match(field string, m *v1.Match, taken []bool) {
	if m == nil {
		return
	}
	before := len(u.found)
	u.entries(field, m)
	matcher, gets := compile(m), false
	var all []string
	for i, h := range u.Hosts {
		if !matcher.matches(h) {
			continue
		}
		if gets = gets || !taken[i]; !gets {
			all = append(all, h.Name)
		}
		taken[i] = true
	}
	switch {
	case gets:
	case len(all) > 0:
		slices.Sort(all)
		u.add(field, "no host is left for it: each %s that it matches is exempt or in an earlier stage (%s)", u.who, text.List(all, mostShown))
	case len(u.found) == before:
		u.add(field, "no %s matches all of it", u.who)
	}
}

// entries warns of what in a match no host has.
func (u *unmatched) entries(field string, m *v1.Match) {
	if len(m.Hosts) > 0 && u.names == nil {
		u.names = set{}
		for _, h := range u.Hosts {
			u.names.add(h.Name)
		}
	}
	for n, name := range m.Hosts {
		if _, known := u.names[name]; !known {
			u.add(fmt.Sprintf("%s.hosts[%d]", field, n), "no %s is named %q", u.who, name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
		u.label(rollout.LabelPath(field+".labels", key), key, m.Labels[key])
	}
	for n, role := range m.Roles {
		u.entry(fmt.Sprintf("%s.roles[%d]", field, n), role, "role", u.roles)
	}
	for n, name := range m.Applications {
		u.entry(fmt.Sprintf("%s.applications[%d]", field, n), name, "application", u.applications)
	}
}

// selector warns of what in a selector no host has, or else of one that no host has all of. Fields
// are named as in a query.
func (u *unmatched) selector(s v1.Selector) {
	matcher := s.Matcher()
	known, keys, environments := set{}, set{}, set{}
	for _, h := range u.Hosts {
		if matcher.Fits(h.Name, h.Role, h.Environment, h.Labels) {
			return
		}
		known.add(h.Name)
		environments.add(h.Environment)
		for key := range h.Labels {
			keys.add(key)
		}
	}
	for _, name := range s.Hosts {
		u.entry("host", name, "name", known)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		if _, some := keys[key]; !some {
			u.entry("label", key, "label", keys)
			continue
		}
		for value := range strings.SplitSeq(s.Labels[key], ",") {
			u.label("label", key, value)
		}
	}
	for _, role := range s.Roles {
		u.entry("role", role, "role", u.roles)
	}
	for _, name := range s.Environments {
		if _, some := environments[name]; !some {
			u.environment(name, environments)
		}
	}
	if len(u.found) == 0 {
		u.add("", "each part matches a known host, and no known host matches all of them")
	}
}

// environment warns of an environment that has no host.
func (u *unmatched) environment(name string, have set) {
	known := slices.Sorted(maps.Keys(have))
	if closest, some := window.Closest(name, known); some {
		u.add("environment", "no known host is in environment %q; did you mean %s?", name, closest)
		return
	}
	u.add("environment", "no known host is in environment %q; hosts are in %s", name, cmp.Or(text.List(known, mostShown), "none"))
}

// label warns of a label that no host has with that value.
func (u *unmatched) label(field, key, value string) {
	have := set{}
	for _, h := range u.Hosts {
		if has, labelled := h.Labels[key]; labelled {
			have[has] = struct{}{}
		}
	}
	if _, has := have[value]; has {
		return
	}
	values := make([]string, 0, len(have))
	for _, v := range slices.Sorted(maps.Keys(have)) {
		values = append(values, cmp.Or(v, strconv.Quote(v)))
	}
	if len(values) == 0 {
		u.add(field, "no %s has label %s", u.who, key)
	} else {
		u.add(field, "no %s has %q as label %s; hosts have %s", u.who, value, key, text.List(values, mostShown))
	}
}

// scripts warns of scripts that are not there; nil is not known.
func (u *unmatched) scripts(needs []need, there []string, how string) {
	for _, n := range needs {
		if there != nil && !slices.Contains(there, n.script) {
			u.add(n.field, "%q %s", n.script, how)
		}
	}
}
