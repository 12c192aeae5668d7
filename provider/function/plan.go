package function

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// planOf is what windows and calendars add up to. ZoneAt is where the site's
// zone stands among the arguments.
func planOf(ctx context.Context, windows, calendars types.Dynamic, zones []string, zoneAt int64) (window.Schedule, *function.FuncError) {
	location, failure := site(zones, zoneAt)
	if failure != nil {
		return window.Schedule{}, failure
	}
	w := argument{name: "windows", at: windowsAt}
	config := v1.OSUpgrade{MaintenanceWindows: w.windows(ctx, windows)}
	if failure := w.failure(); failure != nil {
		return window.Schedule{}, failure
	}
	c := argument{name: "calendars", at: calendarsAt}
	named := c.calendars(ctx, calendars)
	if failure := c.failure(); failure != nil {
		return window.Schedule{}, failure
	}
	plan, err := v1.PlanOf(config, named, location)
	if err != nil {
		return plan, wrongPlan(err, c.places)
	}
	return plan, nil
}

// wrongPlan says what is wrong, at the path within the argument where it
// stands. Places are those of the calendars.
func wrongPlan(err error, places map[string]string) *function.FuncError {
	var problems v1.Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		return function.NewFuncError(err.Error())
	}
	at, lines := windowsAt, make([]string, len(problems))
	for i, p := range problems {
		place, below := "windows", strings.TrimPrefix(p.Field, "maintenance-windows")
		if rest, ok := strings.CutPrefix(p.Field, "calendars."); ok {
			name, field, _ := strings.Cut(rest, ".")
			at, place, below = calendarsAt, places[name], "."+field
		}
		if !strings.HasPrefix(below, ".ics") {
			below = strings.ReplaceAll(below, "-", "_")
		}
		lines[i] = place + below + ": " + p.Message
	}
	return function.NewArgumentFuncError(at, strings.Join(lines, "\n"))
}

// windows reads the argument windows.
func (a *argument) windows(ctx context.Context, given types.Dynamic) []v1.MaintenanceWindow {
	windows := []v1.MaintenanceWindow{}
	for i, each := range a.list(a.name, a.value(ctx, given)) {
		o := a.object(a.name+"["+strconv.Itoa(i)+"]", each, "days_of_week", "start_time", "timezone", "duration")
		windows = append(windows, v1.MaintenanceWindow{
			DaysOfWeek: o.days("days_of_week"), StartTime: o.text("start_time"),
			Timezone: o.text("timezone"), Duration: o.text("duration"),
		})
	}
	return windows
}

// calendars reads the argument calendars, and notes in places where each stands.
func (a *argument) calendars(ctx context.Context, given types.Dynamic) map[string]v1.Calendar {
	named := map[string]v1.Calendar{}
	a.places = map[string]string{}
	add := func(name, at string, o object) {
		if first, twice := a.places[name]; twice {
			a.wrong(at, "its name %q is that of %s already; give each calendar one of its own", name, first)
		}
		a.places[name] = at
		named[name] = o.calendar()
	}
	known := []string{"name", "kind", "description", "events", "ics", "tenant", "overwrite_existing", "timeouts"}
	all := a.value(ctx, given)
	if members, ok := all.(map[string]any); ok {
		for _, name := range sorted(members) {
			at := a.name + "[" + strconv.Quote(name) + "]"
			add(name, at, a.object(at, members[name], known...))
		}
		return named
	}
	for i, each := range a.list(a.name, all) {
		at := a.name + "[" + strconv.Itoa(i) + "]"
		o := a.object(at, each, known...)
		name := o.text("name")
		if name == "" && o.members != nil {
			a.wrong(at, "has no name; give it one, or use a map of calendars by name")
		}
		add(name, at, o)
	}
	return named
}

func (o object) calendar() v1.Calendar {
	c := v1.Calendar{Kind: o.text("kind"), Description: o.text("description"), ICS: o.text("ics")}
	at := o.at + ".events"
	for i, each := range o.argument.list(at, o.members["events"]) {
		e := o.argument.object(at+"["+strconv.Itoa(i)+"]", each,
			"summary", "start", "end", "duration", "timezone", "all_day", "rrule", "rdate", "exdate")
		c.Events = append(c.Events, v1.Event{
			Summary: e.text("summary"), Start: e.text("start"), End: e.text("end"), Duration: e.text("duration"),
			Timezone: e.text("timezone"), AllDay: e.flag("all_day"), RRule: e.text("rrule"),
			RDate: e.texts("rdate"), ExDate: e.texts("exdate"),
		})
	}
	return c
}

func sorted(members map[string]any) []string {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
