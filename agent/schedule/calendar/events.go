package calendar

import (
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// Events converts an iCalendar text to the fields of events that happen at the same times.
// It returns what is left out of them, as LeftOut does, and up to 20 problems; with any
// problem it returns no events. Whether an event is too long for kind allow is not decided
// here.
func Events(ics string) (events []EventText, leftOut, found []Problem) {
	return eventsOf(ics, &problems{})
}

// Published is Events of a text that somebody publishes: it may have no event, because all may
// have been removed.
func Published(ics string) (events []EventText, leftOut, found []Problem) {
	return eventsOf(ics, &problems{mayBeEmpty: true})
}

func eventsOf(ics string, p *problems) (events []EventText, leftOut, found []Problem) {
	drafts := readICS(ics, p)
	c := &Calendar{kind: Freeze}
	if c.compile(drafts, p); len(p.found) > 0 {
		return nil, nil, p.found
	}
	for _, d := range drafts {
		event := d.fields()
		// A calendar refuses an event that is there twice, and a text may have it twice.
		if !slices.ContainsFunc(events, event.equal) {
			events = append(events, event)
		}
	}
	return events, p.leftOut, nil
}

// fields returns the fields of an event whose parts fit together. All times are in the zone of
// its start.
func (d *draft) fields() EventText {
	zone := d.start.zone
	e := EventText{Summary: d.summary, Start: d.start.short(), Timezone: zone.String(), AllDay: d.start.date, RRule: d.rule}
	switch {
	case d.end != nil:
		// No error: the parts fit together.
		if length, nominal, _ := d.toEnd(); nominal {
			e.End = d.end.short()
		} else {
			e.Duration = window.FormatDuration(length)
		}
	case d.hasLength:
		e.Duration = window.FormatDuration(d.length)
	}
	e.RDate, e.ExDate = inZone(d.dates, zone), inZone(d.without, zone)
	return e
}

func inZone(all []dateTime, zone window.Zone) []string {
	var texts []string
	for _, s := range all {
		if same, err := s.in(zone); err == nil {
			texts = append(texts, same.short())
		}
	}
	return texts
}

// short is String without seconds that are zero.
func (s dateTime) short() string {
	if s.date {
		return s.String()
	}
	return strings.TrimSuffix(s.String(), ":00")
}

func (e EventText) equal(other EventText) bool {
	return e.Summary == other.Summary && e.Start == other.Start && e.End == other.End && e.Duration == other.Duration &&
		e.Timezone == other.Timezone && e.AllDay == other.AllDay && e.RRule == other.RRule &&
		slices.Equal(e.RDate, other.RDate) && slices.Equal(e.ExDate, other.ExDate)
}
