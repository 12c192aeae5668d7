package calendar

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// event is what happens at a start, at the starts of a rule, and on dates of its
// own. Wall-clock times are those of its zone, as the instants at which they
// show in UTC.
type event struct {
	source window.Source
	zone   window.Zone
	start  time.Time
	length time.Duration
	// nominal tells that the length is that on the wall clock, from one time to
	// another, rather than elapsed time.
	nominal bool
	rule    *rule
	// dates are the starts besides those of the rule, sorted, start being one of
	// them.
	dates []time.Time
	// without are starts that are left out, and withoutDays the midnights of
	// dates that are, in seconds since 1970.
	without, withoutDays map[int64]bool
}

// slack is more than a change of a clock ever moved a time by.
const slack = day

// occurrences yields those that overlap the time between two instants. It
// returns false if yield did.
func (e *event) occurrences(clock *window.Clock, from, to time.Time, yield func(window.Occurrence) bool) bool {
	first, last := clock.Wall(from).Add(-e.length-slack), clock.Wall(to).Add(slack)
	return e.starts(first, last, func(wall time.Time) bool {
		o, ok := e.at(wall, clock)
		return !ok || !o.Start.Before(to) || !o.End.After(from) || yield(o)
	})
}

// starts yields the wall-clock times from first to last at which the event
// starts.
func (e *event) starts(first, last time.Time, yield func(time.Time) bool) bool {
	i, _ := slices.BinarySearchFunc(e.dates, first, time.Time.Compare)
	for _, wall := range e.dates[i:] {
		if wall.After(last) {
			break
		}
		if !e.leftOut(wall) && !yield(wall) {
			return false
		}
	}
	return e.rule == nil || e.rule.starts(first, last, func(wall time.Time) bool {
		return e.dated(wall) || e.leftOut(wall) || yield(wall)
	})
}

func (e *event) dated(wall time.Time) bool {
	_, found := slices.BinarySearchFunc(e.dates, wall, time.Time.Compare)
	return found
}

func (e *event) leftOut(wall time.Time) bool {
	return e.without[wall.Unix()] || e.withoutDays[midnight(wall).Unix()]
}

// at returns the occurrence that starts at a wall-clock time. There is none
// whose start lies on a date that the zone skips or, if it goes from one time to
// another, that a gap swallows from start to end.
func (e *event) at(wall time.Time, clock *window.Clock) (window.Occurrence, bool) {
	start, ok := clock.Start(wall)
	end := start.Add(e.length)
	if e.nominal {
		// From one wall-clock time to another: what there is of it.
		end = clock.First(wall.Add(e.length))
		ok = end.After(start)
	}
	return window.Occurrence{
		Span:       window.Span{Start: start, End: end},
		Source:     e.source,
		StartMoved: !clock.Wall(start).Equal(wall),
		EndMoved:   !clock.Wall(end).Equal(wall.Add(e.length)),
	}, ok
}

func midnight(wall time.Time) time.Time { return wall.Truncate(day) }
