// Package calendar knows named calendars: how their events are written, in
// fields or as iCalendar text (RFC 5545), and when they happen.
//
// It decides which wall-clock times a recurrence yields; package window decides
// which instants those are (AV-21). Recurrence is worked out on the wall clock
// alone and from any date on, so that the work for a stretch of time does not
// depend on how long ago an event began.
//
// Everything here is a pure function of text, site and time.
package calendar

import (
	"iter"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// Kind tells what the events of a calendar do.
type Kind string

// The kinds.
const (
	// Allow opens, like one more window.
	Allow Kind = "allow"
	// Freeze closes, whatever else is open.
	Freeze Kind = "freeze"
)

// The limits of a calendar. They bound the work that it can make.
const (
	// MaxEvents is how many events a calendar may have.
	MaxEvents = 1000
	// MaxICS is how long an iCalendar text may be, in bytes.
	MaxICS = 1 << 20
	// MaxOccurrences is how many times the events of a calendar may happen
	// around an instant, about: in the month around it and, for each event, in
	// its own length before that.
	MaxOccurrences = 10_000
	// MaxDates is how many dates an event may add, and how many it may leave
	// out.
	MaxDates = 1000
	// MinLength is how long an event lasts at least.
	MinLength = window.MinDuration
	// MaxAllow is how long an event of kind allow lasts at most.
	MaxAllow = window.MaxDuration
	// MaxFreeze is how long an event of kind freeze lasts at most.
	MaxFreeze = 366 * day
)

const day = 24 * time.Hour

// Calendar is a named set of events. It is a window.Calendar.
type Calendar struct {
	name   string
	kind   Kind
	events []event
}

var _ window.Calendar = (*Calendar)(nil)

// Name returns the calendar's name.
func (c *Calendar) Name() string { return c.name }

// Kind returns what its events do.
func (c *Calendar) Kind() Kind { return c.kind }

// Occurrences yields, in any order, those that overlap the time between two
// instants. Site is the location of site-local events; nil means UTC.
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

// clockSet keeps the clock of the zone that was asked for last: most calendars
// have one zone.
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
