package window

import (
	"math"
	"time"
)

// Clock is the wall clock of a zone. It resolves wall-clock times to instants.
// It caches the last period of equal offset that it looked up, because
// successive times mostly lie in the same period.
//
// A wall-clock time is represented by the instant with the same time in UTC.
type Clock struct {
	location *time.Location
	offset   time.Duration
	// The cached period in seconds since 1970, from inclusive to exclusive.
	from, to int64
}

// NewClock returns the clock of a location.
func NewClock(location *time.Location) *Clock { return &Clock{location: location} }

// Wall returns what the clock shows at an instant.
func (c *Clock) Wall(at time.Time) time.Time {
	if !c.covers(at) {
		c.load(at)
	}
	return at.UTC().Add(c.offset)
}

// First returns the first instant at which the clock shows a time or later. For
// a time that a change of the clock skips, that is the end of the gap; for a
// time that occurs twice, the first occurrence.
func (c *Clock) First(wall time.Time) time.Time {
	before, after := wall.Add(-day), wall.Add(day)
	if !c.covers(before) || !c.covers(after) {
		c.load(before)
		if !c.covers(after) {
			return firstInstant(wall, c.location)
		}
	}
	return wall.Add(-c.offset)
}

// Start is First for the start of a window or event. It fails for a date that
// the zone skips as a whole, such as 2011-12-30 in Pacific/Apia.
func (c *Clock) Start(wall time.Time) (at time.Time, ok bool) {
	at = c.First(wall)
	midnight := wall.Truncate(day)
	if c.Wall(at).Truncate(day).Equal(midnight) {
		return at, true
	}
	// The gap ends on the next date. It skipped either the whole date or only its
	// last hour, as in America/Nuuk on 2025-03-29.
	return at, c.Wall(c.First(midnight)).Truncate(day).Equal(midnight)
}

func (c *Clock) covers(at time.Time) bool {
	s := at.Unix()
	return c.from <= s && s < c.to
}

// load caches the period of equal offset around an instant.
func (c *Clock) load(at time.Time) {
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

// firstInstant is Clock.First without the cache. It walks the periods of equal
// offset. time.Date would not do: it does not report that a time was skipped,
// and for America/Santiago on 2026-09-06 it moves the time back across midnight.
func firstInstant(wall time.Time, location *time.Location) time.Time {
	// No zone was ever more than 16 hours from UTC, so a day earlier the clock
	// shows an earlier time in every zone.
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

// periodEnd returns the next instant at which the offset may change, in UTC;
// zero means never.
func periodEnd(from time.Time, location *time.Location) time.Time {
	_, end := from.In(location).ZoneBounds()
	if !end.IsZero() && !end.After(from) {
		// ZoneBounds counts 365 days also in a leap year, so on the last day of
		// a leap year the end is in the past. No zone changes its clock on that day.
		return from.Truncate(day).Add(day)
	}
	return end.UTC()
}
