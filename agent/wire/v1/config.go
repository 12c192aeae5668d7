package v1

import (
	"fmt"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// The limits of a configuration.
const (
	MaxWindows      = 100
	MaxApplications = 1000
)

// OSUpgrade is a tenant's os-upgrade configuration, Avassa's object at
// /v1/config/tenants/{tenant}/os-upgrade. A nil list is absent from the
// body; an empty one is there and empty.
type OSUpgrade struct {
	// WorkerApplications lists the applications whose hosts take part.
	WorkerApplications []WorkerApplication `json:"worker-applications,omitzero"`
	// MaintenanceWindows lists the times at which a run may be in progress; they add up.
	MaintenanceWindows []MaintenanceWindow `json:"maintenance-windows,omitzero"`
	// Target counts for the hosts that are in no environment, and for each environment that has
	// none of its own.
	release.Target
}

// WorkerApplication names one application that carries out upgrades.
type WorkerApplication struct {
	Name string `json:"name"`
}

// MaintenanceWindow is a weekly recurring span.
type MaintenanceWindow struct {
	// DaysOfWeek is one string of English day names, such as
	// "Friday, Saturday": the days on which the window starts.
	DaysOfWeek string `json:"days-of-week"`
	// StartTime is the wall-clock time at which it starts, HH:MM.
	StartTime string `json:"start-time"`
	// Timezone is "site-local", "UTC" or an IANA name; empty means site-local.
	Timezone string `json:"timezone,omitempty"`
	// Duration is its length in elapsed time, such as "4h" or "1d4h18s".
	Duration string `json:"duration"`
}

// DecodeOSUpgrade reads a body and validates it. The content type is that of the
// request; none means JSON. An error is Problems, and tells of the syntax, of
// unknown keys and of values at once. A list that is not in the body is nil.
func DecodeOSUpgrade(contentType string, body []byte) (OSUpgrade, error) {
	return decode(contentType, body, OSUpgrade{}, OSUpgrade.Validate)
}

// Validate returns everything that is wrong with the values, and nothing when
// all is right.
func (o OSUpgrade) Validate() Problems {
	return slices.Concat(o.validateApplications(), o.validateWindows(), o.Target.Validate())
}

func (o OSUpgrade) validateApplications() Problems {
	const field = "worker-applications"
	if n := len(o.WorkerApplications); n > MaxApplications {
		return Problems{document.TooMany(field, n, MaxApplications)}
	}
	var found Problems
	first := map[string]int{}
	for i, application := range o.WorkerApplications {
		path, name := fmt.Sprintf("%s[%d].name", field, i), application.Name
		other, twice := first[name]
		switch {
		case !names.Valid(name):
			found = append(found, document.Wrong(path, name, "is not a name; "+names.Form))
		case twice:
			found = append(found, document.Wrong(path, name, fmt.Sprintf("is %s[%d] again; name each application once", field, other)))
		default:
			first[name] = i
		}
	}
	return found
}

func (o OSUpgrade) validateWindows() Problems {
	const field = "maintenance-windows"
	if n := len(o.MaintenanceWindows); n > MaxWindows {
		return Problems{document.TooMany(field, n, MaxWindows)}
	}
	var found Problems
	first := map[window.Window]int{}
	for i, entry := range o.MaintenanceWindows {
		path := fmt.Sprintf("%s[%d]", field, i)
		w, wrong := entry.parse()
		for _, p := range wrong {
			found = append(found, Problem{Field: path + "." + p.Field, Value: document.Clip(p.Value), Message: p.Err.Error()})
		}
		other, twice := first[w]
		switch {
		case len(wrong) > 0:
		case twice:
			found = append(found, document.Wrong(path, spell(w).text(), fmt.Sprintf("is %s[%d] again; give each window once", field, other)))
		default:
			first[w] = i
		}
	}
	return found
}

// Windows returns the windows as values to compute with, in the order of the
// entries. The error is Problems.
func (o OSUpgrade) Windows() ([]window.Window, error) {
	if wrong := o.validateWindows(); len(wrong) > 0 {
		return nil, wrong
	}
	windows := make([]window.Window, len(o.MaintenanceWindows))
	for i, entry := range o.MaintenanceWindows {
		windows[i], _ = entry.parse()
	}
	return windows, nil
}

// Canonical returns the configuration with each window in the one way to spell
// it: days from Monday on, HH:MM, the timezone written out, the duration in the
// fewest units. Entries keep their order; one that is wrong stays as it is.
func (o OSUpgrade) Canonical() OSUpgrade {
	o.Target = o.Target.Canonical()
	if o.MaintenanceWindows == nil {
		return o
	}
	spelt := make([]MaintenanceWindow, len(o.MaintenanceWindows))
	for i, entry := range o.MaintenanceWindows {
		spelt[i] = entry
		if w, wrong := entry.parse(); len(wrong) == 0 {
			spelt[i] = spell(w)
		}
	}
	o.MaintenanceWindows = spelt
	return o
}

func (w MaintenanceWindow) parse() (window.Window, []window.Problem) {
	return window.Parse(w.DaysOfWeek, w.StartTime, w.Timezone, w.Duration)
}

// spell writes a window in its canonical form.
func spell(w window.Window) MaintenanceWindow {
	return MaintenanceWindow{
		DaysOfWeek: w.Days.String(),
		StartTime:  w.Start.String(),
		Timezone:   w.Zone.String(),
		Duration:   window.FormatDuration(w.Duration),
	}
}

// text returns the window for people.
func (w MaintenanceWindow) text() string {
	return w.DaysOfWeek + " " + w.StartTime + " " + w.Timezone + " " + w.Duration
}
