package calendar

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// Text is a calendar as it is written: with events or with an iCalendar text.
type Text struct {
	// Kind is "allow" or "freeze".
	Kind string
	// Events are the events, as fields.
	Events []EventText
	// ICS is a whole iCalendar text.
	ICS string
}

// EventText is an event as it is written.
type EventText struct {
	// Summary is for people.
	Summary string
	// Start is a wall-clock time such as "2026-12-24T18:00" or, for an event
	// that lasts all day, a date such as "2026-12-24".
	Start string
	// End is written like Start. For an event that lasts all day it is the date
	// after the last. An event has an end or a duration, and one that lasts all
	// day may have neither: then it lasts for a day.
	End string
	// Duration is a length of elapsed time, such as "4h".
	Duration string
	// Timezone is "site-local", "UTC" or an IANA name; empty means site-local.
	Timezone string
	// AllDay tells that the event lasts from midnight to midnight.
	AllDay bool
	// RRule is a recurrence rule, such as "FREQ=YEARLY" (RFC 5545 3.3.10).
	RRule string
	// RDate are further starts, written like Start.
	RDate []string
	// ExDate are starts to leave out, written like Start. A date leaves out
	// every start on it.
	ExDate []string
}

// Parse reads a calendar. It returns a problem for each thing that is wrong, up
// to 20 of them, and then no calendar.
func Parse(name string, text Text) (*Calendar, []Problem) {
	c := &Calendar{name: name, kind: Kind(text.Kind)}
	p := &problems{}
	if c.kind != Allow && c.kind != Freeze {
		p.notef("kind", text.Kind, "%s is not a kind of calendar; use allow or freeze", quote(text.Kind))
		c.kind = Freeze // The limits that are wider, so as to tell of nothing twice.
	}
	var drafts []draft
	switch {
	case text.ICS != "" && len(text.Events) > 0:
		p.notef("ics", "", "there are events besides the iCalendar text; use one of them")
	case text.ICS != "":
		drafts = readICS(text.ICS, p)
	default:
		drafts = readEvents(text.Events, p)
	}
	c.compile(drafts, p)
	if len(p.found) > 0 {
		return nil, p.found
	}
	return c, nil
}

// compile makes the events of what was read.
func (c *Calendar) compile(drafts []draft, p *problems) {
	total := 0
	for _, d := range drafts {
		if p.full() {
			return
		}
		e := d.event(c.kind, p)
		e.source = window.Source{Calendar: c.name, Index: d.index, Summary: d.summary}
		c.events = append(c.events, e)
		total += e.atMost()
		if total > MaxOccurrences {
			p.notef(d.path(d.names.rule), d.rule, "up to here the events happen about %d times around an instant; use at most %d: fewer or rarer events", total, MaxOccurrences)
			return
		}
	}
}

// atMost is about how many times the event happens at most in a month and in its
// own length before that.
func (e *event) atMost() int {
	const month = 32
	if e.rule == nil {
		return 1
	}
	return e.rule.atMost(month+int(e.length/day)) + 1
}

var fields = names{start: "start", end: "end", length: "duration", rule: "rrule", dates: "rdate", without: "exdate"}

func readEvents(events []EventText, p *problems) []draft {
	if len(events) > MaxEvents {
		p.notef("events", "", "there are %d events; use at most %d", len(events), MaxEvents)
		return nil
	}
	seen := map[string]int{}
	drafts := make([]draft, 0, len(events))
	for i, text := range events {
		path := fmt.Sprintf("events[%d]", i)
		key := fmt.Sprintf("%#v", text)
		if first, twice := seen[key]; twice {
			p.notef(path, text.Summary, "is the same as events[%d]; leave one of them out", first)
			continue
		}
		seen[key] = i
		d := draft{index: i, prefix: path + ".", names: fields, summary: text.Summary}
		if d.readFields(text, p) {
			drafts = append(drafts, d)
		}
	}
	return drafts
}

// readFields reads an event's fields, as far as they can be read each alone.
func (d *draft) readFields(text EventText, p *problems) bool {
	before := len(p.found)
	zone, err := window.ParseZone(text.Timezone)
	p.note(d.path("timezone"), text.Timezone, err)
	read := func(field, value string) stamp {
		s, err := parsePlain(value, zone)
		p.note(d.path(field), value, err)
		return s
	}
	if !utf8.ValidString(text.Summary) || strings.ContainsFunc(text.Summary, isControl) {
		p.notef(d.path("summary"), text.Summary, "%s has a character that cannot be printed; use plain text", quote(text.Summary))
	}
	d.start, d.startText = read("start", text.Start), text.Start
	if err == nil && d.start.date != text.AllDay && !d.start.wall.IsZero() {
		p.note(d.path("start"), text.Start, allDayProblem(text))
	}
	if text.End != "" {
		end := read("end", text.End)
		d.end, d.endText = &end, text.End
	}
	if text.Duration != "" {
		length, err := window.ParseDuration(text.Duration)
		p.note(d.path("duration"), text.Duration, err)
		d.length, d.lengthText, d.hasLength = length, text.Duration, true
	}
	d.rule = text.RRule
	for i, value := range text.RDate[:min(len(text.RDate), MaxDates+1)] {
		d.dates = append(d.dates, read(fmt.Sprintf("rdate[%d]", i), value))
	}
	for i, value := range text.ExDate[:min(len(text.ExDate), MaxDates+1)] {
		d.without = append(d.without, read(fmt.Sprintf("exdate[%d]", i), value))
	}
	return len(p.found) == before
}

func allDayProblem(text EventText) error {
	if text.AllDay {
		return fmt.Errorf("%s has a time, but the event lasts all day; use a date such as 2026-12-24", quote(text.Start))
	}
	return fmt.Errorf("%s has no time; add one, such as 2026-12-24T18:00, or say that the event lasts all day (all-day: true)", quote(text.Start))
}

func isControl(r rune) bool { return r < ' ' && !slices.Contains([]rune{'\t', '\n'}, r) || r == 0x7f }
