// Package window decides when a run may be under way: see Schedule. It parses
// the fields of maintenance windows and joins the windows, the events of
// calendars and the freezes to spans of time.
//
// Everything here is a pure function of windows, calendars, zone and time. The
// package never reads a clock and never does I/O. It embeds the time zone
// database, so a zone works on any machine.
package window

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// The limits of a window's duration. A window of more than a week would overlap
// itself. A minute is the resolution of its start.
const (
	MinDuration = time.Minute
	MaxDuration = 7 * day
)

const day = 24 * time.Hour

// Window is a weekly recurring span. Two windows with the same
// meaning are equal, in whatever form they were written.
type Window struct {
	// Days are the weekdays on which it starts, in Zone. The end may lie on
	// another day.
	Days Days
	// Start is the wall-clock time at which it starts, in Zone.
	Start TimeOfDay
	// Zone is where Days and Start are read.
	Zone Zone
	// Duration is its length in elapsed time. A change of the clock does not
	// change it.
	Duration time.Duration
}

// The fields of a window, as the API names them.
const (
	FieldDays     = "days-of-week"
	FieldStart    = "start-time"
	FieldZone     = "timezone"
	FieldDuration = "duration"
)

// Problem is an error in one field of a window.
type Problem struct {
	// Field is one of the Field constants.
	Field string
	// Value is what the field held.
	Value string
	// Err names the value and says what would be right.
	Err error
}

// Parse parses the four fields of a window. It returns a problem for each
// invalid field; with any problem it returns no window.
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

// ParseLength parses a window's duration. The error for a duration outside the
// limits names both limits.
func ParseLength(text string) (time.Duration, error) {
	return ParseDurationWithin(text, MinDuration, MaxDuration)
}

// Days is a set of weekdays; the bit of a day is 1 << time.Weekday.
type Days uint8

// week lists the days in the order of the canonical form.
var week = [7]time.Weekday{
	time.Monday, time.Tuesday, time.Wednesday, time.Thursday,
	time.Friday, time.Saturday, time.Sunday,
}

const daysHint = "use Monday to Sunday, separated by commas"

// ParseDays parses English day names separated by commas, in any order and case
// and with any blanks. An empty list, a repeated day and an unknown day
// are errors; one error names all of them.
func ParseDays(text string) (Days, error) {
	if strings.TrimSpace(text) == "" {
		return 0, fmt.Errorf("%s names no day; %s", quote(text), daysHint)
	}
	if len(text) > maxDaysText {
		return 0, fmt.Errorf("%s is too long to be a list of days; %s", quote(text), daysHint)
	}
	var days Days
	var wrong []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		d, err := parseDay(name)
		switch {
		case err != nil:
			wrong = append(wrong, err.Error())
		case days.Has(d):
			wrong = append(wrong, fmt.Sprintf("%s is repeated; name each day once", quote(name)))
		default:
			days |= 1 << d
		}
	}
	if len(wrong) > 0 {
		return 0, errors.New(strings.Join(wrong, ", and "))
	}
	return days, nil
}

// maxDaysText bounds the length of an error. Seven names with blanks fit easily.
const maxDaysText = 200

func parseDay(name string) (time.Weekday, error) {
	names := make([]string, 0, len(week))
	for _, d := range week {
		if strings.EqualFold(name, d.String()) {
			return d, nil
		}
		names = append(names, d.String())
	}
	if closest, ok := Closest(name, names); ok {
		return 0, fmt.Errorf("%s is not a day; did you mean %s?", quote(name), closest)
	}
	return 0, fmt.Errorf("%s is not a day; %s", quote(name), daysHint)
}

// String returns the canonical form, such as "Friday, Saturday": Monday first.
func (d Days) String() string { return strings.Join(d.Names(), ", ") }

// Names returns the names of the days, Monday first.
func (d Days) Names() []string {
	names := make([]string, 0, bits.OnesCount8(uint8(d)))
	for _, w := range week {
		if d.Has(w) {
			names = append(names, w.String())
		}
	}
	return names
}

// Has reports whether the set holds a weekday.
func (d Days) Has(w time.Weekday) bool { return d&(1<<w) != 0 }

// TimeOfDay is a time on the wall clock, to the minute. The zero value is
// midnight.
type TimeOfDay struct{ minutes int }

// ParseTimeOfDay parses HH:MM, from 00:00 to 23:59, with both digits of each.
func ParseTimeOfDay(text string) (TimeOfDay, error) {
	if len(text) == len("HH:MM") && text[2] == ':' {
		hour, minute := twoDigits(text[:2]), twoDigits(text[3:])
		if 0 <= hour && hour < 24 && 0 <= minute && minute < 60 {
			return TimeOfDay{minutes: hour*60 + minute}, nil
		}
	}
	return TimeOfDay{}, fmt.Errorf("%s is not a time of day; use HH:MM from 00:00 to 23:59", quote(text))
}

// twoDigits parses two decimal digits; it returns -1 for anything else.
func twoDigits(text string) int {
	tens, ones := text[0]-'0', text[1]-'0'
	if tens > 9 || ones > 9 {
		return -1
	}
	return int(tens)*10 + int(ones)
}

// String returns the form HH:MM.
func (t TimeOfDay) String() string { return fmt.Sprintf("%02d:%02d", t.minutes/60, t.minutes%60) }
