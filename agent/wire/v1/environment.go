package v1

import (
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// DefaultEnvironment is the name of the environment of all hosts that are in no other. It cannot
// be declared. In the log its name is empty.
const DefaultEnvironment = "default"

// MaxEnvironments is how many environments a tenant may have.
const MaxEnvironments = 1000

// Environment is a named part of a tenant's hosts that is upgraded by runs of its own, which go
// side by side with those of other environments. What is absent is the tenant's. The hosts that
// no environment matches are those of DefaultEnvironment.
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
}

// HasSchedule reports whether windows of the environment's own replace those of the tenant.
func (e Environment) HasSchedule() bool { return e.MaintenanceWindows != nil || e.Calendars != nil }

// Validate returns everything that is wrong with the values, and nothing when all is right.
func (e Environment) Validate() Problems {
	found := e.Match.Validate("match")
	found = append(found, OSUpgrade{MaintenanceWindows: e.MaintenanceWindows}.validateWindows()...)
	if n := len(e.Calendars); n > MaxCalendars {
		found = append(found, document.TooMany("calendars", n, MaxCalendars))
	}
	for i, name := range e.Calendars {
		if !names.Valid(name) {
			found = append(found, document.Wrong(fmt.Sprintf("calendars[%d]", i), name, "is not the name of a calendar; "+names.Form))
		}
	}
	if e.Rollout != nil {
		found = append(found, e.Rollout.Validate().Under("rollout")...)
	}
	if e.After != nil {
		found = append(found, e.After.validate()...)
	}
	return found
}
