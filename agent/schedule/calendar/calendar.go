// Package calendar parses named calendars, written as fields or as iCalendar
// text (RFC 5545), and decides at which wall-clock times their events happen.
//
// Package window resolves those times to instants. A recurrence is
// computed on the wall clock alone and can begin at any date, so the work for a
// span of time does not depend on how long ago an event began.
//
// Everything here is a pure function of text, site and time. The package never
// reads a clock and never does I/O.
package calendar

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// Kind is what the events of a calendar do.
type Kind string

// The kinds.
const (
	// Allow opens like a window.
	Allow Kind = "allow"
	// Freeze closes. It wins over everything that opens.
	Freeze Kind = "freeze"
)

// The limits of a calendar. They bound the work of computing its occurrences.
const (
	// MaxEvents is the largest number of events.
	MaxEvents = 1000
	// MaxICS is the largest size of an iCalendar text, in bytes.
	MaxICS = 1 << 20
	// MaxOccurrences is about the largest number of occurrences around an
	// instant: in the month around it and, for each event, in the duration of
	// the event before that month.
	MaxOccurrences = 10_000
	// MaxDates is the largest number of dates that an event adds (RDATE), and of
	// dates that it excludes (EXDATE).
	MaxDates = 1000
	// MinLength is the shortest duration of an event.
	MinLength = window.MinDuration
	// MaxAllow is the longest duration of an event of kind allow.
	MaxAllow = window.MaxDuration
	// MaxFreeze is the longest duration of an event of kind freeze.
	MaxFreeze = 366 * day
)

const day = 24 * time.Hour

// Calendar is a named set of events. It is a window.Calendar.
type Calendar struct {
	name    string
	kind    Kind
	events  []event
	leftOut []Problem
}

var _ window.Calendar = (*Calendar)(nil)

// Name returns the calendar's name.
func (c *Calendar) Name() string { return c.name }

// Kind returns what the calendar's events do.
func (c *Calendar) Kind() Kind { return c.kind }

// LeftOut returns the events of an iCalendar text that never happen, and the
// earlier revisions of others, with the reason. At most 20 are kept.
func (c *Calendar) LeftOut() []Problem { return c.leftOut }

// Occurrences yields the occurrences that overlap the time between two
// instants, in any order. Site is the location of site-local events; nil means
// UTC.
func (c *Calendar) Occurrences(site *time.Location, from, to time.Time) iter.Seq[window.Occurrence] {
	return func(yield func(window.Occurrence) bool) {
		clocks := clockSet{site: site}
		for i := range c.events {
			if !c.events[i].occurrences(clocks.of(c.events[i].zone), from, to, yield) {
				return
			}
		}
	}
}

// clockSet caches the clock of the last zone: most calendars have one zone.
type clockSet struct {
	site  *time.Location
	zone  window.Zone
	clock *window.Clock
}

func (s *clockSet) of(zone window.Zone) *window.Clock {
	if s.clock == nil || zone != s.zone {
		s.zone, s.clock = zone, window.NewClock(zone.Location(s.site))
	}
	return s.clock
}

// event happens at its start, at the starts of its rule and on its dates. A
// wall-clock time of its zone is represented by the instant with the same time
// in UTC.
type event struct {
	origin window.Origin
	zone   window.Zone
	start  time.Time
	length time.Duration
	// nominal reports that length is the difference of two wall-clock times, not
	// elapsed time.
	nominal bool
	rule    *rule
	// dates are start and the starts that RDATE adds, sorted.
	dates []time.Time
	// without are the excluded starts, and withoutDays the midnights of the
	// excluded dates, in seconds since 1970.
	without, withoutDays map[int64]bool
}

// slack is more than any change of a clock.
const slack = day

// occurrences yields the occurrences that overlap the time between two
// instants. It returns false if yield did.
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
		if !e.excluded(wall) && !yield(wall) {
			return false
		}
	}
	return e.rule == nil || e.rule.starts(first, last, func(wall time.Time) bool {
		return e.dated(wall) || e.excluded(wall) || yield(wall)
	})
}

func (e *event) dated(wall time.Time) bool {
	_, found := slices.BinarySearchFunc(e.dates, wall, time.Time.Compare)
	return found
}

func (e *event) excluded(wall time.Time) bool {
	return e.without[wall.Unix()] || e.withoutDays[midnight(wall).Unix()]
}

// at returns the occurrence that starts at a wall-clock time. It fails if the
// zone skips the date of the start, or if the event is nominal and the clock
// skips all of it.
func (e *event) at(wall time.Time, clock *window.Clock) (window.Occurrence, bool) {
	start, ok := clock.Start(wall)
	end := start.Add(e.length)
	if e.nominal {
		end = clock.First(wall.Add(e.length))
		ok = end.After(start)
	}
	return window.Occurrence{
		Span:       window.Span{Start: start, End: end},
		Origin:     e.origin,
		StartMoved: !clock.Wall(start).Equal(wall),
		EndMoved:   !clock.Wall(end).Equal(wall.Add(e.length)),
	}, ok
}

func midnight(wall time.Time) time.Time { return wall.Truncate(day) }

// Problem is an error in a calendar.
type Problem struct {
	// Path locates the error, such as "events[2].rrule" or
	// "ics.VEVENT[2].DTSTART". The first event is 0.
	Path string
	// Line is the line of the iCalendar text that the error is in, from 1; 0 if it is in
	// none.
	Line int
	// Value is the value at the path, truncated if it is long.
	Value string
	// Err names the value and says what would be right.
	Err error
}

// Error returns the path, the line and the error.
func (p Problem) Error() string { return p.Path + ": " + p.Message() }

// Message returns the line and the error.
func (p Problem) Message() string {
	if p.Line == 0 {
		return p.Err.Error()
	}
	return fmt.Sprintf("line %d: %v", p.Line, p.Err)
}

// Unwrap returns the cause.
func (p Problem) Unwrap() error { return p.Err }

// maxProblems is how many problems Parse returns at most.
const maxProblems = 20

// problems collects the problems of a calendar, and what is left out of it.
type problems struct {
	found, leftOut []Problem
	// mayBeEmpty tells that an iCalendar text needs no event that happens.
	mayBeEmpty bool
	// lines are the lines of an iCalendar text, by path.
	lines map[string]int
}

// line returns the line of a path. A date of a list is in the line of the list.
func (p *problems) line(path string) int {
	list, _, _ := strings.Cut(path[strings.LastIndex(path, ".")+1:], "[")
	return cmp.Or(p.lines[path], p.lines[path[:strings.LastIndex(path, ".")+1]+list])
}

// leaveOut notes that an event is left out because of a value.
func (p *problems) leaveOut(path, value string, err error) {
	if len(p.leftOut) < maxProblems {
		p.leftOut = append(p.leftOut, Problem{Path: path, Line: p.line(path), Value: shorten(value), Err: fmt.Errorf("%s %w; the event is left out", quote(value), err)})
	}
}

func (p *problems) note(path, value string, err error) {
	if err != nil && !p.full() {
		p.found = append(p.found, Problem{Path: path, Line: p.line(path), Value: shorten(value), Err: err})
	}
}

func (p *problems) notef(path, value, format string, args ...any) {
	p.note(path, value, fmt.Errorf(format, args...))
}

// full reports that there are enough problems to stop.
func (p *problems) full() bool { return len(p.found) >= maxProblems }

// quote quotes a value for an error and truncates a long one.
func quote(text string) string { return strconv.Quote(shorten(text)) }

func shorten(value string) string { return text.Cut(value, 80, "...") }
