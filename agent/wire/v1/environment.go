package v1

import (
	"fmt"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// DefaultEnvironment is the name of the environment of all hosts that are in no other. It cannot
// be declared. In the log its name is empty.
const DefaultEnvironment = "default"

// MaxEnvironments is how many environments a tenant may have.
const MaxEnvironments = 1000

// Environment is a named part of a tenant's hosts that is upgraded by runs of its own, which go
// side by side with those of other environments. It is the object at
// /v1/config/tenants/{tenant}/os-upgrade/environments/{name}. What is absent is the tenant's. The
// hosts that no environment matches are those of DefaultEnvironment.
type Environment struct {
	// Description is for people.
	Description string `json:"description,omitempty"`
	// Match selects the hosts. A match that names a host wins over one that selects it in another
	// way.
	Match Match `json:"match"`
	// MaintenanceWindows are the windows of its runs, in place of those of the configuration.
	MaintenanceWindows []MaintenanceWindow `json:"maintenance-windows,omitzero"`
	// Calendars are the names of calendars of kind allow that open windows for it, in place of
	// all that no environment names. Every freeze counts for every environment.
	Calendars []string `json:"calendars,omitzero"`
	// Rollout is the policy of its runs.
	Rollout *Rollout `json:"rollout,omitempty"`
	// After are the environments that come before this one.
	After *After `json:"after,omitempty"`
	release.Target
}

// HasSchedule reports whether windows of the environment's own replace those of the tenant.
func (e Environment) HasSchedule() bool { return e.MaintenanceWindows != nil || e.Calendars != nil }

// Validate returns everything that is wrong with the values, and nothing when all is right.
func (e Environment) Validate() Problems {
	var found Problems
	if m := e.Match; len(m.Hosts)+len(m.Labels)+len(m.Roles)+len(m.Applications) == 0 {
		found = Problems{{Field: "match", Message: "it is missing; say which hosts belong to the environment: by hosts, labels, roles or applications"}}
	} else {
		found = e.Match.Validate("match")
	}
	for _, p := range validateReason(e.Description) {
		p.Field = "description"
		found = append(found, p)
	}
	found = append(found, OSUpgrade{MaintenanceWindows: e.MaintenanceWindows}.validateWindows()...)
	if n := len(e.Calendars); n > MaxCalendars {
		found = append(found, document.TooMany("calendars", n, MaxCalendars))
	}
	for i, name := range e.Calendars {
		switch {
		case !names.Valid(name):
			found = append(found, document.Wrong(fmt.Sprintf("calendars[%d]", i), name, "is not the name of a calendar; "+names.Form))
		case slices.Contains(e.Calendars[:i], name):
			found = append(found, document.Wrong(fmt.Sprintf("calendars[%d]", i), name, "is there twice; name each calendar once"))
		}
	}
	if e.Rollout != nil {
		found = append(found, e.Rollout.Validate().Under("rollout")...)
	}
	if e.After != nil {
		found = append(found, e.After.validate()...)
	}
	return append(found, e.Target.Validate()...)
}

// Canonical returns the environment with its windows and its rollout in canonical form.
func (e Environment) Canonical() Environment {
	e.MaintenanceWindows = OSUpgrade{MaintenanceWindows: e.MaintenanceWindows}.Canonical().MaintenanceWindows
	if e.Rollout != nil {
		e.Rollout = new(e.Rollout.Canonical())
	}
	if e.After != nil {
		e.After = new(e.After.canonical())
	}
	e.Target = e.Target.Canonical()
	return e
}

// HasWindows reports whether windows of its own open runs of the environment: those that it declares,
// or events of the calendars that it names.
func (e Environment) HasWindows() bool { return len(e.MaintenanceWindows)+len(e.Calendars) > 0 }

// SameEnvironment reports whether two environments mean the same. The order of windows, of calendars
// and of what a match lists has no meaning.
func SameEnvironment(a, b Environment) bool { return sameJSON(a.sorted(), b.sorted()) }

// sorted returns the canonical form with all lists in one order, and the members of the rollout that
// are absent with their defaults.
func (e Environment) sorted() Environment {
	e = e.Canonical()
	inOrder := func(list []string) []string {
		list = slices.Clone(list)
		slices.Sort(list)
		return list
	}
	e.Match.Hosts, e.Match.Roles, e.Match.Applications = inOrder(e.Match.Hosts), inOrder(e.Match.Roles), inOrder(e.Match.Applications)
	e.Calendars = inOrder(e.Calendars)
	e.MaintenanceWindows = slices.Clone(e.MaintenanceWindows)
	slices.SortFunc(e.MaintenanceWindows, compareWindows)
	if e.Rollout != nil {
		e.Rollout = new(e.Rollout.WithDefaults().Canonical())
	}
	return e
}

// EnvironmentName returns what is wrong with the name of an environment that is declared; empty when
// it is right.
func EnvironmentName(name string) string {
	switch {
	case name == DefaultEnvironment:
		return "cannot be declared: it is the environment of all hosts that no other matches, and what is declared for the tenant counts for it; use another name"
	case !names.Valid(name):
		return "is not the name of an environment; " + names.Form
	}
	return ""
}

// EnvironmentInfo is an entry of the list at
// /v1/config/tenants/{tenant}/os-upgrade/environments.
type EnvironmentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// ETag is the ETag of the environment.
	ETag string `json:"etag,omitempty"`
	// Environment is the environment itself; only in a list with content=true.
	Environment *Environment `json:"environment,omitempty"`
}

// NewEnvironment is the body of POST .../os-upgrade/environments: an environment and its name.
type NewEnvironment struct {
	Name string `json:"name"`
	// Description is for people.
	Description string `json:"description,omitempty"`
	// Match selects the hosts.
	Match Match `json:"match"`
	// MaintenanceWindows are the windows of its runs, in place of those of the configuration.
	MaintenanceWindows []MaintenanceWindow `json:"maintenance-windows,omitzero"`
	// Calendars are the names of calendars of kind allow that open windows for it.
	Calendars []string `json:"calendars,omitzero"`
	// Rollout is the policy of its runs, in place of the tenant's.
	Rollout *Rollout `json:"rollout,omitempty"`
	// After are the environments that come before this one.
	After *After `json:"after,omitempty"`
	release.Target
}

// DecodeNewEnvironment reads the body of a request that creates an environment; its error and keep
// are those of Form.Decode.
func DecodeNewEnvironment(contentType string, body []byte, keep bool) (name string, e Kept[Environment], err error) {
	d, err := document.Parse(contentType, body)
	if err != nil {
		return "", e, err
	}
	var wrong Problems
	name, _ = d.Root().Text("name")
	if problem := EnvironmentName(name); problem != "" {
		wrong = Problems{document.Wrong("name", name, problem)}
	}
	e, err = EnvironmentForm.fill(e, d, keep, wrong...)
	return name, e, err
}
