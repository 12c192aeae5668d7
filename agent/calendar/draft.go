package calendar

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// draft is an event that was read, before its parts are held against each other.
type draft struct {
	index   int
	prefix  string
	names   names
	summary string

	start     stamp
	startText string
	end       *stamp
	endText   string

	length     time.Duration
	lengthText string
	hasLength  bool

	rule           string
	dates, without []stamp
}

// names are what the parts of an event are called where it was written.
type names struct{ start, end, length, rule, dates, without string }

func (d *draft) path(field string) string { return d.prefix + field }

// event makes the event, or notes what is wrong with it.
func (d *draft) event(kind Kind, p *problems) event {
	e := event{zone: d.start.zone, start: d.start.wall}
	e.length, e.nominal = d.lasts(kind, p)
	if d.rule != "" {
		rule, err := parseRule(d.rule, d.start)
		p.note(d.path(d.names.rule), d.rule, err)
		if err == nil {
			e.rule = rule
		}
	}
	e.dates = d.starts(p)
	e.without, e.withoutDays = map[int64]bool{}, map[int64]bool{}
	d.leaveOut(&e, p)
	return e
}

// lasts returns how long the event lasts, and whether that is on the wall clock.
func (d *draft) lasts(kind Kind, p *problems) (length time.Duration, nominal bool) {
	field, text := d.names.length, d.lengthText
	switch {
	case d.end != nil && d.hasLength:
		p.notef(d.path(field), text, "%s is there besides %s; use one of them", quote(text), d.names.end)
		return 0, false
	case d.end != nil:
		field, text = d.names.end, d.endText
		var err error
		if length, nominal, err = d.toEnd(); err != nil {
			p.note(d.path(field), text, fmt.Errorf("%s %w", quote(text), err))
			return 0, false
		}
	case d.hasLength && d.start.date && d.length%day != 0:
		p.notef(d.path(field), text, "%s is no whole number of days, but the event lasts all day; use whole days, such as 1d", quote(text))
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
		return fmt.Errorf("with %s the event ends no later than it starts; %s", quote(text), limits)
	case length < MinLength:
		return fmt.Errorf("with %s the event is too short; %s", quote(text), limits)
	case length > most:
		return fmt.Errorf("with %s the event lasts %s, too long for kind %s; %s", quote(text), window.FormatDuration(length), kind, limits)
	}
	return nil
}

// toEnd returns the length up to the end: on the wall clock if it is that of the
// start, and elapsed time between two zones.
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

// starts returns the event's own start and those that it adds.
func (d *draft) starts(p *problems) []time.Time {
	starts := []time.Time{d.start.wall}
	if len(d.dates) > MaxDates {
		p.notef(d.path(d.names.dates), "", "there are more than %d dates; use a rule, or several events", MaxDates)
		return starts
	}
	for i, s := range d.dates {
		path := d.path(fmt.Sprintf("%s[%d]", d.names.dates, i))
		if s.date != d.start.date {
			p.notef(path, s.String(), "%s is not written like the start, %s; use dates for both or times for both", s, d.start)
			continue
		}
		same, err := s.in(d.start.zone)
		p.note(path, s.String(), err)
		starts = append(starts, same.wall)
	}
	slices.SortFunc(starts, time.Time.Compare)
	return slices.CompactFunc(starts, time.Time.Equal)
}

// leaveOut notes the starts that the event leaves out.
func (d *draft) leaveOut(e *event, p *problems) {
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
