package window

import (
	"iter"
	"math"
	"time"
)

// Horizon is how far ahead of an instant Next and NextFreeze look.
const Horizon = 10 * 366 * day

// maxSeen is how many occurrences Next and NextFreeze examine. It bounds the time
// for a calendar that has hundreds of freezes on each day of many years.
const maxSeen = 100_000

// Span is the time from Start up to, but not including, End. Both are in UTC.
type Span struct{ Start, End time.Time }

// Contains reports whether an instant lies in the span.
func (s Span) Contains(at time.Time) bool { return !at.Before(s.Start) && at.Before(s.End) }

// Length is how long the span lasts, in elapsed time.
func (s Span) Length() time.Duration { return s.End.Sub(s.Start) }

func (s Span) overlaps(from, to time.Time) bool { return s.Start.Before(to) && s.End.After(from) }

// Occurrence is one time that a window opens or an event of a calendar happens.
type Occurrence struct {
	Span
	Origin Origin
	// StartMoved reports that the clock skips the wall-clock time of the start.
	// The occurrence starts at the end of the gap instead.
	StartMoved bool
	// EndMoved reports that, because the clock changes, the occurrence ends at
	// another wall-clock time than start plus duration, or than the end written
	// in the event.
	EndMoved bool
}

// Origin is the window or event that an occurrence belongs to.
type Origin struct {
	// Calendar is the calendar's name; empty for a window.
	Calendar string
	// Index is the position of the window in Schedule.Windows, or of the event
	// in its calendar. The first is 0.
	Index int
	// Summary is the event's summary; empty if it has none.
	Summary string
}

// Calendar is a named set of occurrences (package calendar).
type Calendar interface {
	// Name is unique among the calendars of a schedule.
	Name() string
	// Occurrences yields the occurrences that overlap the time between two
	// instants, in any order. Site is the location of site-local events; nil
	// means UTC. Time and memory are bounded by the length of that time.
	Occurrences(site *time.Location, from, to time.Time) iter.Seq[Occurrence]
}

// Schedule decides when a run may be under way. The zero value never opens.
type Schedule struct {
	// Windows recur weekly.
	Windows []Window
	// Allow are the calendars whose events open like windows.
	Allow []Calendar
	// Freezes are the calendars whose events close. A freeze wins over every
	// window and every event of Allow.
	Freezes []Calendar
	// Site is the location of site-local windows and events; nil means UTC.
	Site *time.Location
}

// Opening is a span in which a run may be under way.
//
// Start identifies the opening: every instant of an opening has an opening with
// the same Start, even if the end changes later. A freeze inside a window
// leaves an opening before it and an opening after it, and a run may be started
// in each; both have the same Window.
//
// Windows and events that overlap or touch are joined to one window. If
// the joined window is longer than 7 days and 2 hours, each start in it begins
// a new window: "every day at 00:00 for 24h" gives one window a day, not one
// that never ends.
type Opening struct {
	Span
	// Window is the span as it would be without freezes.
	Window Span
	// Open are the occurrences that the span is made of, by start.
	Open []Occurrence
	// Cuts are the freezes in the window, by start.
	Cuts []Occurrence
}

// StartMoved reports whether the span starts later than written because the
// clock skips the time of the start.
func (o Opening) StartMoved() bool {
	for _, occurrence := range o.Open {
		if occurrence.StartMoved && occurrence.Start.Equal(o.Start) {
			return true
		}
	}
	return false
}

// EndMoved reports whether, because the clock changes, the span ends at another
// wall-clock time than written.
func (o Opening) EndMoved() bool {
	for _, occurrence := range o.Open {
		if occurrence.EndMoved && occurrence.End.Equal(o.End) {
			return true
		}
	}
	return false
}

// Current returns the opening that contains an instant, if there is one.
func (s Schedule) Current(at time.Time) (Opening, bool) {
	for o := range s.Ahead(at, at.Add(1), 0) {
		if o.Contains(at) {
			return o, true
		}
	}
	return Opening{}, false
}

// Next returns the opening that contains an instant, or else the first opening
// after it. It finds none beyond the horizon, nor after examining 100,000
// occurrences of windows, events and freezes.
func (s Schedule) Next(at time.Time) (Opening, bool) {
	for o := range s.openings(at, at.Add(Horizon), maxSeen) {
		if o.overlaps(at, at.Add(Horizon)) {
			return o, true
		}
	}
	return Opening{}, false
}

// Ahead yields the openings that overlap the time between two instants, by
// start: at most count of them, or all if count is 0. Memory does not grow with
// the length of that time.
func (s Schedule) Ahead(from, to time.Time, count int) iter.Seq[Opening] {
	return func(yield func(Opening) bool) {
		found := 0
		for o := range s.openings(from, to, math.MaxInt) {
			if !o.overlaps(from, to) {
				continue
			}
			found++
			if !yield(o) || found == count {
				return
			}
		}
	}
}

// Freeze is a time in which no run may be under way. Freezes that overlap or
// touch are one.
type Freeze struct {
	Span
	// First is the freeze that begins it. Of the freezes in force at an instant
	// it is the one that began first.
	First Occurrence
}

// NextFreeze returns the freeze in force at an instant, or else the first one
// after it. It looks no further than the horizon, and ends a freeze after
// examining 100,000 freezes.
func (s Schedule) NextFreeze(at time.Time) (Freeze, bool) {
	last := at.Add(Horizon)
	feed := newFeed(s.Freezes, s.Site, at, minSpan)
	o, ok := feed.before(last)
	if !ok {
		return Freeze{}, false
	}
	f := Freeze{Span: o.Span, First: o}
	for ; ok && f.End.Before(last) && feed.seen <= maxSeen; o, ok = feed.before(f.End.Add(1)) {
		feed.drop()
		f.End = latest(f.End, o.End)
	}
	return f, true
}

// Current returns the span of windows alone that contains an instant, if there
// is one: see Schedule.Current.
func Current(windows []Window, site *time.Location, at time.Time) (Span, bool) {
	opening, ok := Schedule{Windows: windows, Site: site}.Current(at)
	return opening.Span, ok
}

// Next returns the span of windows alone that contains an instant, or else the
// first one after it: see Schedule.Next. Without windows there is none.
func Next(windows []Window, site *time.Location, at time.Time) (Span, bool) {
	opening, ok := Schedule{Windows: windows, Site: site}.Next(at)
	return opening.Span, ok
}

// weekly is the calendar of one window.
type weekly struct {
	Window
	origin Origin
}

func (w weekly) Name() string { return "" }

func (w weekly) Occurrences(site *time.Location, from, to time.Time) iter.Seq[Occurrence] {
	return func(yield func(Occurrence) bool) {
		clock := NewClock(w.Zone.Location(site))
		// One more day at either end, for changes of the clock.
		first := clock.Wall(from.Add(-w.Duration)).Truncate(day).Add(-day)
		last := clock.Wall(to).Add(day)
		for midnight := first; midnight.Before(last); midnight = midnight.Add(day) {
			if !w.Days.Has(midnight.Weekday()) {
				continue
			}
			o, ok := w.on(midnight, clock)
			if ok && o.overlaps(from, to) && !yield(o) {
				return
			}
		}
	}
}

// on returns the occurrence that starts on a date, if there is one.
func (w weekly) on(midnight time.Time, clock *Clock) (Occurrence, bool) {
	wall := midnight.Add(time.Duration(w.Start.minutes) * time.Minute)
	start, ok := clock.Start(wall)
	end := start.Add(w.Duration)
	return Occurrence{
		Span:       Span{Start: start, End: end},
		Origin:     w.origin,
		StartMoved: !clock.Wall(start).Equal(wall),
		EndMoved:   !clock.Wall(end).Equal(wall.Add(w.Duration)),
	}, ok
}
