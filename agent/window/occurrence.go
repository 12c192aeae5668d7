package window

import (
	"slices"
	"time"
)

// horizon is how many days either side of an instant are searched for
// occurrences: two weeks, since a zone may skip a whole date and with it one
// occurrence of a weekly window, and two days to spare.
const horizon = 16

// occurrences returns the occurrences of all windows that start within the
// horizon around an instant, and maybe some that start just outside of it,
// sorted by start.
func occurrences(windows []Window, site *time.Location, at time.Time) []Span {
	var spans []Span
	for _, w := range windows {
		location := w.Zone.Location(site)
		year, month, date := at.In(location).Date()
		for offset := -horizon - 1; offset <= horizon+1; offset++ {
			midnight := time.Date(year, month, date+offset, 0, 0, 0, 0, time.UTC)
			if !w.Days.Has(midnight.Weekday()) {
				continue
			}
			if start, ok := startOn(midnight, w.Start, location); ok {
				spans = append(spans, Span{Start: start, End: start.Add(w.Duration)})
			}
		}
	}
	slices.SortFunc(spans, func(a, b Span) int { return a.Start.Compare(b.Start) })
	return spans
}

// startOn returns the instant at which a window starts on a date of its zone:
// the first at which the wall clock shows its start time or later (AV-21). So a
// start that a change of the clock skips moves to the end of the gap, and one
// that happens twice is the first. A date that the zone skips as a whole, such
// as 2011-12-30 in Pacific/Apia, has no start. The date is given as its
// midnight in UTC.
func startOn(midnight time.Time, start TimeOfDay, location *time.Location) (time.Time, bool) {
	at := firstInstant(midnight.Add(time.Duration(start.minutes)*time.Minute), location)
	if sameDate(at, midnight, location) {
		return at, true
	}
	// The gap ends on the next date. Either it swallowed the whole date, or only
	// its last hour, as in America/Nuuk on 2025-03-29.
	exists := sameDate(firstInstant(midnight, location), midnight, location)
	return at, exists
}

func sameDate(at, midnight time.Time, location *time.Location) bool {
	year, month, date := at.In(location).Date()
	return time.Date(year, month, date, 0, 0, 0, 0, time.UTC).Equal(midnight)
}

// firstInstant returns the first instant at which the wall clock shows a time or
// later; the time is given as the instant at which it shows in UTC. It walks the
// periods of equal offset, since time.Date does not say whether it had to move
// the time, and moves it back across midnight in America/Santiago on 2026-09-06.
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
