package function

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
)

// argument converts an argument of any type and collects its problems, each with
// its path. Unlike in a value of a fixed type, objects may omit optional
// attributes.
type argument struct {
	name  string
	at    int64
	found []string
	// paths are the paths of the calendars, by name.
	paths map[string]string
}

func (a *argument) wrong(at, format string, args ...any) {
	a.found = append(a.found, at+": "+fmt.Sprintf(format, args...))
}

// failure returns one error with all problems.
func (a *argument) failure() *function.FuncError {
	if len(a.found) == 0 {
		return nil
	}
	return function.NewArgumentFuncError(a.at, strings.Join(a.found, "\n"))
}

// value converts to a string, float64, bool, []any or map[string]any; null is
// nil.
func (a *argument) value(ctx context.Context, given types.Dynamic) any {
	if given.IsNull() || given.IsUnderlyingValueNull() {
		return nil
	}
	raw, err := given.UnderlyingValue().ToTerraformValue(ctx)
	if err != nil {
		a.wrong(a.name, "cannot be read: %v", err)
		return nil
	}
	plain, err := conversion.Plain(raw)
	if err != nil {
		a.wrong(a.name, "cannot be read: %v", err)
	}
	return plain
}

// as returns a value that must be of a type; null is its zero value.
func as[T any](a *argument, at string, value any, wanted string) T {
	typed, ok := value.(T)
	if !ok && value != nil {
		a.wrong(at, "is %s; use %s", kindOf(value), wanted)
	}
	return typed
}

// list returns a value that must be a list; null has no elements.
func (a *argument) list(at string, value any) []any {
	return as[[]any](a, at, value, "a list of objects")
}

// object returns a value that must be an object without other attributes than
// the known ones.
func (a *argument) object(at string, value any, known ...string) object {
	members, ok := value.(map[string]any)
	if !ok {
		a.wrong(at, "is %s; use an object", kindOf(value))
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if slices.Contains(known, name) {
			continue
		}
		advice := "use " + strings.Join(known, ", ")
		if closest, ok := window.Closest(name, known); ok {
			advice = "did you mean " + closest + "?"
		}
		a.wrong(at, "has no attribute %q; %s", name, advice)
	}
	return object{a, at, members}
}

// object is an object at a path of the argument.
type object struct {
	argument *argument
	at       string
	members  map[string]any
}

// text returns an attribute; empty if it is null or absent.
func (o object) text(name string) string {
	return as[string](o.argument, o.at+"."+name, o.members[name], "a text")
}

func (o object) flag(name string) bool {
	return as[bool](o.argument, o.at+"."+name, o.members[name], "true or false")
}

func (o object) texts(name string) []string {
	var texts []string
	for i, each := range as[[]any](o.argument, o.at+"."+name, o.members[name], "a list of texts") {
		text, ok := each.(string)
		if !ok {
			o.argument.wrong(o.at+"."+name+"["+strconv.Itoa(i)+"]", "is %s; use a text", kindOf(each))
		}
		texts = append(texts, text)
	}
	return texts
}

// days returns the days of a window as one text, the form of the API.
func (o object) days(name string) string {
	if text, ok := o.members[name].(string); ok {
		return text
	}
	return strings.Join(o.texts(name), ", ")
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case bool:
		return "a bool"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}

// scheduleOf converts the arguments to a schedule. zoneAt is the position of the
// argument with the site's time zone.
func scheduleOf(ctx context.Context, windows, calendars types.Dynamic, zones []string, zoneAt int64) (window.Schedule, *function.FuncError) {
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
	schedule, err := v1.ScheduleOf(config, named, location)
	if err != nil {
		return schedule, invalidSchedule(err, c.paths)
	}
	return schedule, nil
}

// invalidSchedule translates the API's problems to paths within the arguments.
// paths are the paths of the calendars.
func invalidSchedule(err error, paths map[string]string) *function.FuncError {
	var problems v1.Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		return function.NewFuncError(err.Error())
	}
	at, lines := windowsAt, make([]string, len(problems))
	for i, p := range problems {
		path, below := "windows", strings.TrimPrefix(p.Field, "maintenance-windows")
		if rest, ok := strings.CutPrefix(p.Field, "calendars."); ok {
			name, field, _ := strings.Cut(rest, ".")
			at, path, below = calendarsAt, paths[name], "."+field
		}
		if !strings.HasPrefix(below, ".ics") {
			below = strings.ReplaceAll(below, "-", "_")
		}
		lines[i] = path + below + ": " + p.Message
	}
	return function.NewArgumentFuncError(at, strings.Join(lines, "\n"))
}

// windows converts the argument windows.
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

// calendars converts the argument calendars and records their paths.
func (a *argument) calendars(ctx context.Context, given types.Dynamic) map[string]v1.Calendar {
	named := map[string]v1.Calendar{}
	a.paths = map[string]string{}
	add := func(name, at string, o object) {
		if first, twice := a.paths[name]; twice {
			a.wrong(at, "its name %q is also the name of %s; use distinct names", name, first)
		}
		a.paths[name] = at
		named[name] = o.calendar()
	}
	known := []string{"name", "kind", "description", "events", "ics", "url", "refresh", "tenant", "overwrite_existing", "timeouts"}
	all := a.value(ctx, given)
	if members, ok := all.(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(members)) {
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
	c := v1.Calendar{Kind: o.text("kind"), Description: o.text("description")}
	if o.members["url"] != nil {
		o.argument.wrong(o.at, "has a url, whose events only the site knows; leave the calendar out, or read osupgrade_state, which knows the next window")
	}
	if ics := o.text("ics"); o.members["ics"] != nil {
		c.ICS = &ics
	}
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
