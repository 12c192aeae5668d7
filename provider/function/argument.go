package function

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
)

// Windows and calendars are arguments of any type, because values of a fixed type could not
// omit optional attributes. They become the bodies of requests, and the agent's decoder of
// those says what is wrong with them.

// member returns the member of an attribute, and the attribute of a member. A hyphen becomes
// an underscore, so that start-time is unknown as an attribute.
var member = strings.NewReplacer("_", "-", "-", "_").Replace

// problems are what is wrong with an argument, each with its path.
type problems []string

func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, path+": "+fmt.Sprintf(format, args...))
}

// addAll adds the problems of a body. path returns the path of a field of it.
func (p *problems) addAll(err error, path func(field string) string) {
	var found v1.Problems
	if !errors.As(err, &found) && err != nil {
		p.add(path(""), "%v", err)
	}
	for _, problem := range found {
		field := problem.Field
		if !strings.HasPrefix(field, "ics") {
			field = member(field)
		}
		p.add(path(field), "%s", diagnostics.HCL(problem.Message))
	}
}

// failure returns one error with all problems of the argument at a position.
func (p *problems) failure(position int64) *function.FuncError {
	if len(*p) == 0 {
		return nil
	}
	return function.NewArgumentFuncError(position, strings.Join(*p, "\n"))
}

// scheduleOf converts the arguments to a schedule. zoneAt is the position of the
// argument with the site's time zone.
func scheduleOf(ctx context.Context, windows, calendars types.Dynamic, zones []string, zoneAt int64) (window.Schedule, *function.FuncError) {
	location, failure := site(zones, zoneAt)
	if failure != nil {
		return window.Schedule{}, failure
	}
	var wrong problems
	config := wrong.windows(rawOf(ctx, windows))
	if failure := wrong.failure(windowsAt); failure != nil {
		return window.Schedule{}, failure
	}
	named := wrong.calendars(rawOf(ctx, calendars))
	if failure := wrong.failure(calendarsAt); failure != nil {
		return window.Schedule{}, failure
	}
	schedule, err := v1.ScheduleOf(config, named, location)
	if err != nil {
		return schedule, function.NewFuncError(err.Error())
	}
	return schedule, nil
}

// rawOf returns the value of an argument; null is an empty list.
func rawOf(ctx context.Context, given types.Dynamic) tftypes.Value {
	none := tftypes.NewValue(tftypes.Tuple{}, []tftypes.Value{})
	if given.IsNull() || given.IsUnderlyingValueNull() {
		return none
	}
	raw, err := given.UnderlyingValue().ToTerraformValue(ctx)
	if err != nil {
		panic("function: an argument has no value: " + err.Error())
	}
	return raw
}

// windows converts the argument windows.
func (p *problems) windows(raw tftypes.Value) v1.OSUpgrade {
	plain := p.plain("windows", raw)
	list, _ := plain.([]any)
	for _, each := range list {
		w, _ := each.(map[string]any)
		if days, ok := w["days-of-week"].([]any); ok {
			w["days-of-week"] = strings.Join(textsOf(days), ", ")
		}
	}
	config, err := read(map[string]any{"maintenance-windows": plain}, v1.DecodeOSUpgrade)
	p.addAll(err, func(field string) string { return "windows" + strings.TrimPrefix(field, "maintenance_windows") })
	return config
}

func textsOf(list []any) []string {
	texts := make([]string, len(list))
	for i, each := range list {
		texts[i] = fmt.Sprint(each)
	}
	return texts
}

// calendars converts the argument calendars: a list, or a map by name.
func (p *problems) calendars(raw tftypes.Value) map[string]v1.Calendar {
	named, paths := map[string]v1.Calendar{}, map[string]string{}
	var byName map[string]tftypes.Value
	if raw.As(&byName) == nil {
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			at := "calendars[" + strconv.Quote(name) + "]"
			named[name] = p.calendar(at, p.plain(at, byName[name]))
		}
		return named
	}
	var list []tftypes.Value
	if raw.As(&list) != nil {
		p.add("calendars", "it is neither a list of calendars nor a map of them by name")
	}
	for i, each := range list {
		at := "calendars[" + strconv.Itoa(i) + "]"
		plain := p.plain(at, each)
		members, isObject := plain.(map[string]any)
		name, _ := members["name"].(string)
		if first, twice := paths[name]; twice && name != "" {
			p.add(at, "its name %q is also the name of %s; use distinct names", name, first)
		} else if name == "" && isObject {
			p.add(at, "has no name; give it one, or use a map of calendars by name")
		}
		paths[name], named[name] = at, p.calendar(at, plain)
	}
	return named
}

// calendar converts a calendar, which may be a resource: its other attributes do not count.
func (p *problems) calendar(at string, plain any) v1.Calendar {
	if members, ok := plain.(map[string]any); ok {
		for _, other := range []string{"name", "tenant", "overwrite_existing", "timeouts"} {
			delete(members, member(other))
		}
	}
	calendar, err := read(plain, v1.DecodeCalendar)
	p.addAll(err, func(field string) string { return strings.TrimSuffix(at+"."+field, ".") })
	if calendar.URL != "" {
		p.add(at, "has a url, whose events only the site knows; leave the calendar out, or read osupgrade_state, which knows the next window")
	}
	return calendar
}

// plain converts a value to texts, numbers, lists and members.
func (p *problems) plain(at string, raw tftypes.Value) any {
	d := conversion.Document{Member: member}
	plain := d.Read("", raw)
	if !raw.IsFullyKnown() {
		d.Err = errors.New("a value in it is not known yet")
	}
	if d.Err != nil {
		p.add(at, "cannot be read: %v", d.Err)
	}
	return plain
}

// read decodes an object as the body of a request.
func read[T any](plain any, decode func(contentType string, body []byte) (T, error)) (T, error) {
	body, err := json.Marshal(plain)
	if err != nil {
		var none T
		return none, fmt.Errorf("it cannot be read: %w", err)
	}
	return decode("", body)
}

// instant parses the argument of an instant.
func instant(text string) (time.Time, *function.FuncError) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, function.NewArgumentFuncError(instantAt, fmt.Sprintf(
			"%q is not an instant; use RFC 3339, such as 2026-12-24T18:00:00Z or the result of timestamp()", text))
	}
	return at, nil
}

// site parses the optional argument of the site's time zone at a position.
func site(texts []string, position int64) (*time.Location, *function.FuncError) {
	switch len(texts) {
	case 0:
		return time.UTC, nil
	case 1:
		zone, err := window.ParseZone(texts[0])
		if err == nil && (texts[0] == "" || zone.String() == window.SiteLocal) {
			err = fmt.Errorf("%q is not the site's time zone; use UTC or an IANA name such as Europe/Stockholm", texts[0])
		}
		if err != nil {
			return nil, function.NewArgumentFuncError(position, err.Error())
		}
		return zone.Location(time.UTC), nil
	}
	return nil, function.NewArgumentFuncError(position, fmt.Sprintf("there are %d time zones of the site; give at most one", len(texts)))
}
