package calendar

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// Text is a calendar before parsing: with events or with an iCalendar text.
type Text struct {
	// Kind is "allow" or "freeze".
	Kind string
	// Events are the events, as fields.
	Events []EventText
	// ICS is a whole iCalendar text; nil means that there is none.
	ICS *string
}

// EventText is an event before parsing.
type EventText struct {
	// Summary is for people.
	Summary string
	// Start is a wall-clock time such as "2026-12-24T18:00" or, for an all-day
	// event, a date such as "2026-12-24".
	Start string
	// End has the form of Start. For an all-day event it is the date after the
	// last day. An event has an end or a duration; an all-day event without
	// either lasts one day.
	End string
	// Duration is elapsed time, such as "4h".
	Duration string
	// Timezone is "site-local", "UTC" or an IANA name; empty means site-local.
	Timezone string
	// AllDay makes the event last from midnight to midnight.
	AllDay bool
	// RRule is a recurrence rule, such as "FREQ=YEARLY" (RFC 5545 3.3.10).
	RRule string
	// RDate are further starts, in the form of Start.
	RDate []string
	// ExDate are excluded starts, in the form of Start. A date excludes every
	// start on that date.
	ExDate []string
}

// Parse parses a calendar. It returns up to 20 problems; with any problem it
// returns no calendar.
func Parse(name string, text Text) (*Calendar, []Problem) {
	c := &Calendar{name: name, kind: Kind(text.Kind)}
	p := &problems{}
	if c.kind != Allow && c.kind != Freeze {
		p.notef("kind", text.Kind, "%s is not a kind of calendar; use allow or freeze", quote(text.Kind))
		c.kind = Freeze // The wider limits, so that one mistake is one problem.
	}
	var drafts []draft
	switch {
	case text.ICS != nil && *text.ICS == "" && len(text.Events) == 0:
		p.notef("ics", "", "the iCalendar text is empty, so the calendar would have no event; write the text, or leave ics out")
	case text.ICS != nil && *text.ICS != "" && len(text.Events) > 0:
		p.notef("ics", "", "there are events besides the iCalendar text; use one of them")
	case text.ICS != nil && *text.ICS != "":
		drafts = readICS(*text.ICS, p)
	default:
		drafts = readEvents(text.Events, p)
	}
	c.compile(drafts, p)
	c.leftOut = p.leftOut
	if len(p.found) > 0 {
		return nil, p.found
	}
	return c, nil
}

// compile turns the drafts into the calendar's events.
func (c *Calendar) compile(drafts []draft, p *problems) {
	total := 0
	for _, d := range drafts {
		if p.full() {
			return
		}
		e := d.event(c.kind, p)
		e.origin = window.Origin{Calendar: c.name, Index: d.index, Summary: d.summary}
		c.events = append(c.events, e)
		total += e.atMost()
		if total > MaxOccurrences {
			p.notef(d.path(d.names.rule), d.rule, "up to here the events happen about %d times around an instant; use at most %d: fewer or rarer events", total, MaxOccurrences)
			return
		}
	}
}

// atMost estimates, from above, how many times the event happens in a month and
// in the event's duration before that.
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

// readFields parses the fields of an event one by one. It reports whether all of
// them are valid.
func (d *draft) readFields(text EventText, p *problems) bool {
	before := len(p.found)
	zone, err := window.ParseZone(text.Timezone)
	p.note(d.path("timezone"), text.Timezone, err)
	read := func(field, value string) dateTime {
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

// draft is an event of which each part is valid. Its method event checks that
// the parts fit together.
type draft struct {
	index   int
	prefix  string
	names   names
	summary string

	start     dateTime
	startText string
	end       *dateTime
	endText   string

	length     time.Duration
	lengthText string
	hasLength  bool

	rule           string
	dates, without []dateTime
}

// names are the names of an event's parts in its own format.
type names struct{ start, end, length, rule, dates, without string }

func (d *draft) path(field string) string { return d.prefix + field }

// event returns the event and notes the parts that do not fit together.
func (d *draft) event(kind Kind, p *problems) event {
	e := event{zone: d.start.zone, start: d.start.wall}
	e.length, e.nominal = d.duration(kind, p)
	if d.rule != "" {
		rule, err := parseRule(d.rule, d.start)
		p.note(d.path(d.names.rule), d.rule, err)
		if err == nil {
			e.rule = rule
		}
	}
	e.dates = d.starts(p)
	e.without, e.withoutDays = map[int64]bool{}, map[int64]bool{}
	d.exclude(&e, p)
	return e
}

// duration returns the event's duration and whether it is nominal.
func (d *draft) duration(kind Kind, p *problems) (length time.Duration, nominal bool) {
	field, text := d.names.length, d.lengthText
	switch {
	case d.end != nil && d.hasLength:
		p.notef(d.path(field), text, "%s is given besides %s; use one of them", quote(text), d.names.end)
		return 0, false
	case d.end != nil:
		field, text = d.names.end, d.endText
		var err error
		if length, nominal, err = d.toEnd(); err != nil {
			p.note(d.path(field), text, fmt.Errorf("%s %w", quote(text), err))
			return 0, false
		}
	case d.hasLength && d.start.date && d.length%day != 0:
		p.notef(d.path(field), text, "%s is not a multiple of 1d, but the event lasts all day; use days, such as 1d", quote(text))
		return 0, false
	case d.hasLength:
		length, nominal = d.length, d.start.date
	case d.start.date:
		return day, true
	default:
		p.notef(d.path(d.names.start), d.startText, "the event that starts at %s has no end; add %s or %s", quote(d.startText), d.names.end, field)
		return 0, false
	}
	p.note(d.path(field), text, checkLength(kind, length, text))
	return length, nominal
}

func checkLength(kind Kind, length time.Duration, text string) error {
	most := MaxFreeze
	if kind == Allow {
		most = MaxAllow
	}
	limits := fmt.Sprintf("let it last from %s to %s", window.FormatDuration(MinLength), window.FormatDuration(most))
	switch {
	case length <= 0:
		return fmt.Errorf("with %s the event does not end after its start; %s", quote(text), limits)
	case length < MinLength:
		return fmt.Errorf("with %s the event is too short; %s", quote(text), limits)
	case length > most:
		return fmt.Errorf("with %s the event lasts %s, too long for kind %s; %s", quote(text), window.FormatDuration(length), kind, limits)
	}
	return nil
}

// toEnd returns the time from start to end: nominal if both are in one zone,
// elapsed time otherwise.
func (d *draft) toEnd() (length time.Duration, nominal bool, err error) {
	switch {
	case d.end.date && !d.start.date:
		return 0, false, fmt.Errorf("has no time, but the start has; add one")
	case !d.end.date && d.start.date:
		return 0, false, fmt.Errorf("has a time, but the event lasts all day; use a date")
	case d.end.date || d.end.zone == d.start.zone:
		return d.end.wall.Sub(d.start.wall), true, nil
	case d.end.zone == floating || d.start.zone == floating:
		return 0, false, errZones
	}
	return d.end.instant().Sub(d.start.instant()), false, nil
}

// starts returns the event's start and the starts that RDATE adds.
func (d *draft) starts(p *problems) []time.Time {
	starts := []time.Time{d.start.wall}
	if len(d.dates) > MaxDates {
		p.notef(d.path(d.names.dates), "", "there are more than %d dates; use a rule, or several events", MaxDates)
		return starts
	}
	for i, s := range d.dates {
		path := d.path(fmt.Sprintf("%s[%d]", d.names.dates, i))
		if s.date != d.start.date {
			p.notef(path, s.String(), "%s does not have the form of the start, %s; use dates for both or times for both", s, d.start)
			continue
		}
		same, err := s.in(d.start.zone)
		p.note(path, s.String(), err)
		starts = append(starts, same.wall)
	}
	slices.SortFunc(starts, time.Time.Compare)
	return slices.CompactFunc(starts, time.Time.Equal)
}

// exclude sets the excluded starts and dates of the event.
func (d *draft) exclude(e *event, p *problems) {
	if len(d.without) > MaxDates {
		p.notef(d.path(d.names.without), "", "there are more than %d dates to leave out; use an UNTIL, or several events", MaxDates)
		return
	}
	for i, s := range d.without {
		path := d.path(fmt.Sprintf("%s[%d]", d.names.without, i))
		if d.start.date && !s.date {
			p.notef(path, s.String(), "%s has a time, but the event lasts all day; use a date", s)
			continue
		}
		same, err := s.in(d.start.zone)
		p.note(path, s.String(), err)
		if s.date {
			e.withoutDays[same.wall.Unix()] = true
		} else {
			e.without[same.wall.Unix()] = true
		}
	}
}
