package v1

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

var november = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) // A Friday.

// planned are the windows of a configuration and calendars of acme from
// november on.
func planned(t *testing.T, config OSUpgrade, calendars map[string]Calendar, site *time.Location, days, count int) []Window {
	t.Helper()
	schedule, err := ScheduleOf(config, calendars, site)
	if err != nil {
		t.Fatal(err)
	}
	return Windows(schedule, november, november.AddDate(0, 0, days), count)
}

func weekly(days, start, duration string) MaintenanceWindow {
	return MaintenanceWindow{DaysOfWeek: days, StartTime: start, Duration: duration, Timezone: "UTC"}
}

// TestWindowsAsJSON checks the form of a window that two things open and a
// freeze cuts, and of what is left after it.
func TestWindowsAsJSON(t *testing.T) {
	t.Parallel()
	got := planned(t, OSUpgrade{MaintenanceWindows: []MaintenanceWindow{weekly("Monday", "01:00", "1h"), weekly("Friday", "22:00", "4h")}}, map[string]Calendar{
		"release": {Kind: "allow", Events: []Event{{Start: "2020-01-01", AllDay: true}, {Summary: "late", Start: "2026-11-21T01:00", Duration: "3h", Timezone: "UTC"}}},
		"audit":   {Kind: "freeze", Events: []Event{{Summary: "audit", Start: "2026-11-21T00:00", Duration: "90m", Timezone: "UTC"}}},
	}, nil, 2, 0)
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	const around = `"window-start":"2026-11-20T22:00:00Z","window-end":"2026-11-21T04:00:00Z"`
	const cut = `"cuts":[{"calendar":"audit","summary":"audit","from":"2026-11-21T00:00:00Z","to":"2026-11-21T01:30:00Z"}]`
	want := `[{"start":"2026-11-20T22:00:00Z","end":"2026-11-21T00:00:00Z","length":"2h",` + around + `,"sources":[{"window":1}],` + cut + `},` +
		`{"start":"2026-11-21T01:30:00Z","end":"2026-11-21T04:00:00Z","length":"2h30m",` + around +
		`,"sources":[{"window":1},{"calendar":"release","event":1,"summary":"late"}],` + cut + `}]`
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestNoWindowsAreAnEmptyList(t *testing.T) {
	t.Parallel()
	if text, err := json.Marshal(planned(t, OSUpgrade{}, nil, nil, 300, 0)); err != nil || string(text) != "[]" {
		t.Errorf("got %s, %v", text, err)
	}
}

// TestWindowsTellOfClockChanges checks the notes on a start in a gap and on an
// end after a change.
func TestWindowsTellOfClockChanges(t *testing.T) {
	t.Parallel()
	stockholm, err := time.LoadLocation("Europe/Stockholm")
	if err != nil {
		t.Fatal(err)
	}
	config := OSUpgrade{MaintenanceWindows: []MaintenanceWindow{{DaysOfWeek: "Sunday", StartTime: "02:30", Duration: "1h"}}}
	moved := map[string]bool{}
	for _, w := range planned(t, config, nil, stockholm, 366, 0) {
		if w.StartMoved {
			moved[w.Start.In(stockholm).Format("2006-01-02T15:04")] = true
		}
		if w.EndMoved {
			moved[w.End.In(stockholm).Format("2006-01-02T15:04")] = true
		}
	}
	// In March 02:30 is skipped; in October the hour from 02:00 is there twice.
	if want := map[string]bool{"2027-03-28T03:00": true, "2027-03-28T04:00": true, "2027-10-31T02:30": true}; !maps.Equal(moved, want) {
		t.Errorf("moved are %v; want %v", moved, want)
	}
}

// TestSourcesAreToldOnceAndNotOfAll checks that what is told of a window is
// bounded.
func TestSourcesAreToldOnceAndNotOfAll(t *testing.T) {
	t.Parallel()
	daily := planned(t, OSUpgrade{MaintenanceWindows: []MaintenanceWindow{weekly("Friday, Saturday, Sunday", "00:00", "1d")}}, nil, nil, 1, 1)
	if len(daily) != 1 || len(daily[0].Sources) != 1 || daily[0].Length != "3d" {
		t.Errorf("got %+v", daily)
	}
	var events []Event
	for i := range 150 {
		events = append(events, Event{Summary: strings.Repeat("x", i), Start: "2026-11-21T01:00", Duration: "1h", Timezone: "UTC"})
	}
	many := planned(t, OSUpgrade{MaintenanceWindows: []MaintenanceWindow{weekly("Saturday", "00:00", "4h")}}, map[string]Calendar{
		"a": {Kind: "allow", Events: events}, "f": {Kind: "freeze", Events: events},
	}, nil, 2, 0)
	if len(many) != 2 || len(many[0].Sources) != 1 || len(many[0].Cuts) != 100 {
		t.Errorf("got %d windows, %+v", len(many), many)
	}
	if only := planned(t, OSUpgrade{}, map[string]Calendar{"a": {Kind: "allow", Events: events}}, nil, 2, 0); len(only) != 1 || len(only[0].Sources) != 100 {
		t.Errorf("got %+v", only)
	}
}

func TestScheduleOfTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := ScheduleOf(OSUpgrade{}, map[string]Calendar{"right": {Kind: "allow"}, "xmas": {Kind: "allow", Events: []Event{{Start: "x"}}}}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "calendars.xmas.events[0].start: ") {
		t.Errorf("got %v", err)
	}
	_, err = ScheduleOf(OSUpgrade{MaintenanceWindows: []MaintenanceWindow{{}}}, nil, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "maintenance-windows[0].") {
		t.Errorf("got %v", err)
	}
}

func TestWindowFilter(t *testing.T) {
	t.Parallel()
	at := func(days int) time.Time { return november.AddDate(0, 0, days) }
	for name, row := range map[string]struct {
		filter, want WindowFilter
		err          string
	}{
		"nothing":         {WindowFilter{}, WindowFilter{november, november.Add(window.Horizon), 10}, ""},
		"all":             {WindowFilter{at(1), at(2), 1000}, WindowFilter{at(1), at(2), 1000}, ""},
		"the past":        {WindowFilter{From: at(-30), To: at(-20)}, WindowFilter{at(-30), at(-20), 10}, ""},
		"to in the past":  {WindowFilter{To: at(-1)}, WindowFilter{}, "to: \"2026-11-19T12:00:00Z\" is not after from, 2026-11-20T12:00:00Z"},
		"to equals from":  {WindowFilter{From: at(1), To: at(1)}, WindowFilter{}, "is not after from"},
		"from too far":    {WindowFilter{From: at(3661)}, WindowFilter{}, "from: \"2036-11-28T12:00:00Z\" is out of range; use 2016-11-12 to 2036-11-27"},
		"to too far":      {WindowFilter{To: at(3661)}, WindowFilter{}, "to: "},
		"too long ago":    {WindowFilter{From: at(-3661)}, WindowFilter{}, "from: "},
		"too many":        {WindowFilter{Count: 1001}, WindowFilter{}, "count: 1001 is out of range; use 1 to 1000"},
		"fewer than none": {WindowFilter{Count: -1}, WindowFilter{}, "count: -1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, wrong := row.filter.Around(november)
			if row.err == "" && (len(wrong) > 0 || got != row.want) || row.err != "" && (len(wrong) != 1 || !strings.HasPrefix(wrong.Error(), row.err) && !strings.Contains(wrong.Error(), row.err)) {
				t.Errorf("got %+v, %v; want %+v, %q", got, wrong, row.want, row.err)
			}
		})
	}
}

// everySecond is a calendar in which something happens each second, and that
// ends ctx once it was asked.
type everySecond struct {
	stop  context.CancelFunc
	asked *int
}

func (e everySecond) Name() string { return "endless" }

func (e everySecond) Occurrences(_ *time.Location, from, to time.Time) iter.Seq[window.Occurrence] {
	return func(yield func(window.Occurrence) bool) {
		for at := from.Truncate(time.Second); at.Before(to); at = at.Add(time.Second) {
			*e.asked++
			if *e.asked == 1000 {
				e.stop()
			}
			if !yield(window.Occurrence{Span: window.Span{Start: at, End: at.Add(time.Second)}, Origin: window.Origin{Calendar: "endless"}}) {
				return
			}
		}
	}
}

// TestWindowsUntil checks that nobody goes on for one who is gone, whether
// windows are found or not, and that it does what Windows does for all others.
func TestWindowsUntil(t *testing.T) {
	t.Parallel()
	config := OSUpgrade{MaintenanceWindows: []MaintenanceWindow{weekly("Friday", "22:00", "4h")}}
	schedule, err := ScheduleOf(config, map[string]Calendar{"x": {Kind: "freeze", Events: []Event{{Start: "2026-12-04T22:00", Duration: "1h", Timezone: "UTC"}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	to := november.AddDate(10, 0, 0)
	got, err := WindowsUntil(t.Context(), schedule, november, to, 100)
	if want := Windows(schedule, november, to, 100); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for name, with := range map[string]func(window.Calendar) window.Schedule{
		"open": func(c window.Calendar) window.Schedule { return window.Schedule{Allow: []window.Calendar{c}} },
		"frozen": func(c window.Calendar) window.Schedule {
			return window.Schedule{Windows: schedule.Windows, Freezes: []window.Calendar{c}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			asked := 0
			_, err := WindowsUntil(ctx, with(everySecond{stop, &asked}), november, to, 0)
			if !errors.Is(err, context.Canceled) || asked > 1001 {
				t.Errorf("%d were looked at, %v", asked, err)
			}
		})
	}
}
