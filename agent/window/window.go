// Package window knows maintenance windows: how their fields are spelt, and
// which spans of time they add up to, together with the events that calendars
// yield. It decides when a run may be under way: see Plan.
//
// Everything here is a pure function of windows, calendars, zone and time. It
// reads no clock, starts nothing and keeps nothing but zone data, of which it
// carries its own copy so that a zone works on any machine.
package window

import (
	"time"
)

// The limits of a window's duration. A longer window than a week would overlap
// itself; a shorter one than a minute could not be told from none.
const (
	MinDuration = time.Minute
	MaxDuration = 7 * day
)

const day = 24 * time.Hour

// Window is a weekly recurring span (AV-16 to AV-19). Two windows that mean the
// same compare equal, however they were spelt.
type Window struct {
	// Days are the weekdays on which it starts, in Zone. The end may lie on
	// another day.
	Days Days
	// Start is the wall-clock time at which it starts, in Zone.
	Start TimeOfDay
	// Zone is where Days and Start are read.
	Zone Zone
	// Duration is its length in elapsed time, whatever the wall clock does
	// meanwhile (AV-21).
	Duration time.Duration
}

// The fields of a window, as the API names them.
const (
	FieldDays     = "days-of-week"
	FieldStart    = "start-time"
	FieldZone     = "timezone"
	FieldDuration = "duration"
)

// Problem tells what is wrong with one field of a window.
type Problem struct {
	// Field is one of the Field constants.
	Field string
	// Value is what the field held.
	Value string
	// Err names the value and says what would be right.
	Err error
}

// Parse reads a window from its four fields. It returns a problem for each
// field that is wrong, and then no window.
func Parse(days, start, zone, duration string) (Window, []Problem) {
	var w Window
	var problems []Problem
	note := func(field, value string, err error) {
		if err != nil {
			problems = append(problems, Problem{Field: field, Value: value, Err: err})
		}
	}
	var err error
	w.Days, err = ParseDays(days)
	note(FieldDays, days, err)
	w.Start, err = ParseTimeOfDay(start)
	note(FieldStart, start, err)
	w.Zone, err = ParseZone(zone)
	note(FieldZone, zone, err)
	w.Duration, err = ParseLength(duration)
	note(FieldDuration, duration, err)
	if len(problems) > 0 {
		return Window{}, problems
	}
	return w, nil
}

// ParseLength reads a duration that is within the limits of a window's: an
// error says which of them it breaks.
func ParseLength(text string) (time.Duration, error) {
	return ParseDurationWithin(text, MinDuration, MaxDuration)
}
