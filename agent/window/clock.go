package window

import (
	"math"
	"time"
)

// Clock is the wall clock of a zone. It resolves the times that it shows to
// instants (AV-21), and remembers the period of equal offset that it last
// looked at: most times asked for one after the other lie in the same.
//
// A wall-clock time is given as the instant at which it shows in UTC.
type Clock struct {
	location *time.Location
	offset   time.Duration
	// The period, in seconds since 1970: from belongs to it, to does not.
	from, to int64
}

// NewClock returns the clock of a location.
func NewClock(location *time.Location) *Clock { return &Clock{location: location} }

// Wall returns what the clock shows at an instant.
func (c *Clock) Wall(at time.Time) time.Time {
	if !c.covers(at) {
		c.turn(at)
	}
	return at.UTC().Add(c.offset)
}

// First returns the first instant at which the clock shows a time or later. So
// a time that a change of the clock skips is the end of the gap, and one that
// happens twice is the first.
func (c *Clock) First(wall time.Time) time.Time {
	before, after := wall.Add(-day), wall.Add(day)
	if !c.covers(before) || !c.covers(after) {
		c.turn(before)
		if !c.covers(after) {
			return firstInstant(wall, c.location)
		}
	}
	return wall.Add(-c.offset)
}

// Start returns the instant at which something starts that is to start at a
// wall-clock time: the first at which the clock shows it or later, provided
// that the date exists. A date that the zone skips as a whole, such as
// 2011-12-30 in Pacific/Apia, has no start.
func (c *Clock) Start(wall time.Time) (at time.Time, ok bool) {
	at = c.First(wall)
	midnight := wall.Truncate(day)
	if c.Wall(at).Truncate(day).Equal(midnight) {
		return at, true
	}
	// The gap ends on the next date. Either it swallowed the whole date, or only
	// its last hour, as in America/Nuuk on 2025-03-29.
	return at, c.Wall(c.First(midnight)).Truncate(day).Equal(midnight)
}

func (c *Clock) covers(at time.Time) bool {
	s := at.Unix()
	return c.from <= s && s < c.to
}

// turn looks up the period around an instant.
func (c *Clock) turn(at time.Time) {
	local := at.In(c.location)
	_, offset := local.Zone()
	start, end := local.ZoneBounds()
	c.offset, c.from, c.to = time.Duration(offset)*time.Second, math.MinInt64, math.MaxInt64
	if !start.IsZero() {
		c.from = start.Unix()
	}
	if !end.IsZero() {
		c.to = end.Unix()
	}
}

// firstInstant is the rule of Clock.First in full. It walks the periods of equal
// offset, since time.Date does not say whether it had to move the time, and
// moves it back across midnight in America/Santiago on 2026-09-06.
func firstInstant(wall time.Time, location *time.Location) time.Time {
	// No zone was ever further than 16 hours from UTC, so it is not yet that
	// time anywhere.
	from := wall.Add(-day)
	for {
		_, offset := from.In(location).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		if at.Before(from) {
			at = from
		}
		to := periodEnd(from, location)
		if to.IsZero() || at.Before(to) {
			return at
		}
		from = to
	}
}

// periodEnd returns when the offset in force at an instant may change next, in
// UTC; zero means never.
func periodEnd(from time.Time, location *time.Location) time.Time {
	_, end := from.In(location).ZoneBounds()
	if !end.IsZero() && !end.After(from) {
		// The bounds end after 365 days in a leap year too, hence on the last
		// day of one they are in the past; no rule changes the clock on that day.
		return from.Truncate(day).Add(day)
	}
	return end.UTC()
}
