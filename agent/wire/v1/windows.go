package v1

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// The bounds of WindowFilter.
const (
	DefaultWindows   = 10
	MaxWindowsListed = 1000
	// maxSources bounds the sources and the cuts that are listed of one window.
	maxSources = 100
)

// Window is a span in which a run may be in progress, an entry of
// /v1/state/tenants/{tenant}/os-upgrade/windows. Its start is its identity.
type Window struct {
	// Environment is the environment whose own window it is, or that skips it; absent for a window of
	// the tenant, which is that of all environments without windows of their own.
	Environment string    `json:"environment,omitempty"`
	Start       time.Time `json:"start"`
	End         time.Time `json:"end"`
	// Length is its duration in elapsed time, such as "4h".
	Length string `json:"length"`
	// WindowStart and WindowEnd are its bounds without freezes.
	WindowStart time.Time `json:"window-start"`
	WindowEnd   time.Time `json:"window-end"`
	// Sources are what opens it, and Cuts the freezes between WindowStart and WindowEnd;
	// the first 100 of each.
	Sources []WindowSource `json:"sources"`
	Cuts    []WindowCut    `json:"cuts,omitempty"`
	// StartMoved means that a change of the clock skips the start time of the window.
	// EndMoved means that the clock changes during the window, so that it ends at
	// another time of day than start and length add up to.
	StartMoved bool `json:"start-moved,omitempty"`
	EndMoved   bool `json:"end-moved,omitempty"`
	// Skipped tells who has skipped it; absent if nobody has.
	Skipped *SkippedWindow `json:"skipped,omitempty"`
}

// WindowSource is an entry of the configuration's maintenance-windows, or an
// event of a calendar.
type WindowSource struct {
	// Window is the index of a maintenance window, absent for an event.
	Window *int `json:"window,omitempty"`
	// Calendar is the name of a calendar and Event the index of its event.
	Calendar string `json:"calendar,omitempty"`
	Event    *int   `json:"event,omitempty"`
	Summary  string `json:"summary,omitempty"`
}

// WindowCut is one occurrence of an event of a freeze.
type WindowCut struct {
	Calendar string    `json:"calendar"`
	Summary  string    `json:"summary,omitempty"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
}

// Schedule returns what windows and calendars add up to; site is the location of
// what is site-local.
func Schedule(windows []window.Window, calendars []*calendar.Calendar, site *time.Location) window.Schedule {
	schedule := window.Schedule{Windows: windows, Site: site}
	for _, c := range calendars {
		if c.Kind() == calendar.Freeze {
			schedule.Freezes = append(schedule.Freezes, c)
		} else {
			schedule.Allow = append(schedule.Allow, c)
		}
	}
	return schedule
}

// ScheduleOf is Schedule of a configuration and of calendars by name. The error is
// Problems.
func ScheduleOf(config OSUpgrade, calendars map[string]Calendar, site *time.Location) (window.Schedule, error) {
	windows, err := config.Windows()
	if err != nil {
		return window.Schedule{}, err
	}
	var parsed []*calendar.Calendar
	for _, name := range slices.Sorted(maps.Keys(calendars)) {
		c, wrong := calendars[name].Parse(name)
		if len(wrong) > 0 {
			return window.Schedule{}, wrong.Under("calendars." + name)
		}
		parsed = append(parsed, c)
	}
	return Schedule(windows, parsed, site), nil
}

// Windows returns the openings of a schedule that overlap the time between two
// instants, in their order: at most so many, or all if the count is 0.
func Windows(schedule window.Schedule, from, to time.Time, count int) []Window {
	windows := []Window{}
	for o := range schedule.Ahead(from, to, count) {
		windows = append(windows, windowOf(o))
	}
	return windows
}

func windowOf(o window.Opening) Window {
	w := Window{
		Start: o.Start, End: o.End, Length: window.FormatDuration(o.Length()),
		WindowStart: o.Window.Start, WindowEnd: o.Window.End,
		StartMoved: o.StartMoved(), EndMoved: o.EndMoved(),
	}
	var seen []window.Origin
	for _, occurrence := range o.Open {
		if len(seen) < maxSources && !slices.Contains(seen, occurrence.Origin) {
			seen = append(seen, occurrence.Origin)
			w.Sources = append(w.Sources, sourceOf(occurrence.Origin))
		}
	}
	for _, c := range o.Cuts[:min(len(o.Cuts), maxSources)] {
		w.Cuts = append(w.Cuts, WindowCut{Calendar: c.Origin.Calendar, Summary: c.Origin.Summary, From: c.Start, To: c.End})
	}
	return w
}

func sourceOf(s window.Origin) WindowSource {
	if s.Calendar == "" {
		return WindowSource{Window: &s.Index}
	}
	return WindowSource{Calendar: s.Calendar, Event: &s.Index, Summary: s.Summary}
}

// WindowsUntil is Windows, but ends with the error of ctx as soon as that ends:
// a year of many calendars takes its time, and whoever asked may be gone.
func WindowsUntil(ctx context.Context, schedule window.Schedule, from, to time.Time, count int) ([]Window, error) {
	schedule.Allow, schedule.Freezes = until(ctx, schedule.Allow), until(ctx, schedule.Freezes)
	windows := []Window{}
	for o := range schedule.Ahead(from, to, count) {
		if ctx.Err() != nil {
			break
		}
		windows = append(windows, windowOf(o))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return windows, nil
}

// until returns calendars in which nothing happens any more once ctx has ended:
// a schedule whose windows are all frozen looks ahead for years without finding
// one.
func until(ctx context.Context, calendars []window.Calendar) []window.Calendar {
	all := make([]window.Calendar, len(calendars))
	for i, c := range calendars {
		all[i] = ending{Calendar: c, ctx: ctx}
	}
	return all
}

// ending is a calendar until ctx ends.
type ending struct {
	window.Calendar
	ctx context.Context
}

// Occurrences implements window.Calendar.
func (e ending) Occurrences(site *time.Location, from, to time.Time) iter.Seq[window.Occurrence] {
	return func(yield func(window.Occurrence) bool) {
		if e.ctx.Err() != nil {
			return
		}
		for o := range e.Calendar.Occurrences(site, from, to) {
			if e.ctx.Err() != nil || !yield(o) {
				return
			}
		}
	}
}

// WindowFilter chooses among the windows ahead. Its members are the query
// parameters of GET .../windows.
type WindowFilter struct {
	// From and To bound the windows: those that overlap the time between them.
	// Zero is now, and as far ahead as window.Horizon.
	From, To time.Time
	// Count is how many there are at most; 0 is DefaultWindows.
	Count int
}

// Around returns the filter with what it leaves open filled in, or everything
// that is wrong with it.
func (f WindowFilter) Around(now time.Time) (WindowFilter, Problems) {
	first, last := now.Add(-window.Horizon), now.Add(window.Horizon)
	found := append(outside("from", f.From, first, last), outside("to", f.To, first, last)...)
	if f.From.IsZero() {
		f.From = now
	}
	if f.To.IsZero() {
		f.To = last
	}
	if len(found) == 0 && !f.From.Before(f.To) {
		found = append(found, document.Wrong("to", f.To.Format(time.RFC3339), "is not after from, "+f.From.Format(time.RFC3339)))
	}
	if f.Count < 0 || f.Count > MaxWindowsListed {
		found = append(found, document.OutOfRange("count", f.Count, 1, MaxWindowsListed))
	}
	if f.Count == 0 {
		f.Count = DefaultWindows
	}
	return f, found
}

// outside is the problem of an instant that is neither absent nor between two.
func outside(field string, at, first, last time.Time) Problems {
	if at.IsZero() || !at.Before(first) && !at.After(last) {
		return nil
	}
	return Problems{document.Wrong(field, at.Format(time.RFC3339), fmt.Sprintf("is out of range; use %s to %s, ten years either side of now", first.UTC().Format(time.DateOnly), last.UTC().Format(time.DateOnly)))}
}
