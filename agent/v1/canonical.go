package v1

import "github.com/osupgrade/terraform-provider-osupgrade/agent/window"

// Canonical returns the configuration with each window in the one way to spell
// it: days from Monday on, HH:MM, the timezone written out, the duration in the
// fewest units. Entries keep their order; one that is wrong stays as it is.
func (o OSUpgrade) Canonical() OSUpgrade {
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
