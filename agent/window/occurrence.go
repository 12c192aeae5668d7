package window

import (
	"iter"
	"time"
)

// Occurrence is one time that a window or an event of a calendar happens.
type Occurrence struct {
	Span
	Source Source
	// StartMoved tells that a change of the clock skips the time at which it was
	// to start, so that it starts at the end of the gap instead.
	StartMoved bool
	// EndMoved tells that the clock shows another time at its end than its start
	// and its length, or its end as it was written, make believe.
	EndMoved bool
}

// Source tells where an occurrence comes from.
type Source struct {
	// Calendar is the calendar's name; empty for a window.
	Calendar string
	// Index is the window's place in Plan.Windows, or the event's in its
	// calendar, from 0.
	Index int
	// Summary is what the event calls itself, if anything.
	Summary string
}

// Calendar is a named set of occurrences (package calendar).
type Calendar interface {
	// Name is unique among the calendars of a plan.
	Name() string
	// Occurrences yields, in any order, those that overlap the time between two
	// instants. Site is the location of site-local events; nil means UTC. The
	// work and the memory that it takes are bounded, for a stretch of a given
	// length.
	Occurrences(site *time.Location, from, to time.Time) iter.Seq[Occurrence]
}

// weekly yields the occurrences of a window.
type weekly struct {
	Window
	source Source
}

func (w weekly) Name() string { return "" }

func (w weekly) Occurrences(site *time.Location, from, to time.Time) iter.Seq[Occurrence] {
	return func(yield func(Occurrence) bool) {
		clock := NewClock(w.Zone.Location(site))
		// A day to spare either side, for the changes of the clock.
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
		Source:     w.source,
		StartMoved: !clock.Wall(start).Equal(wall),
		EndMoved:   !clock.Wall(end).Equal(wall.Add(w.Duration)),
	}, ok
}
