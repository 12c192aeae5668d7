package calendar

import (
	"errors"
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

var icsNames = names{start: "DTSTART", end: "DTEND", length: "DURATION", rule: "RRULE", dates: "RDATE", without: "EXDATE"}

// vevent is an event of an iCalendar text, before the changes to single
// occurrences are put into the event that they change.
type vevent struct {
	draft
	uid       string
	changes   *stamp // RECURRENCE-ID
	cancelled bool
}

// readICS reads the events of an iCalendar text.
func readICS(text string, p *problems) []draft {
	all, err := components(text)
	if err != nil {
		p.note("ics", "", err)
		return nil
	}
	zones := zonesOf(all)
	var events []vevent
	for _, c := range all {
		if c.name != "VEVENT" {
			continue
		}
		v := vevent{draft: draft{index: c.index, prefix: fmt.Sprintf("ics.VEVENT[%d].", c.index), names: icsNames}}
		before := len(p.found)
		for _, line := range c.properties {
			v.read(line, zones, p)
		}
		if v.startText == "" && len(p.found) == before {
			p.notef(v.path("DTSTART"), "", "the event has no DTSTART; add one")
		}
		events = append(events, v)
	}
	if len(p.found) > 0 {
		return nil
	}
	return override(events, p)
}

// read reads one line of an event. Lines that do not tell when it happens are
// passed over.
func (v *vevent) read(line property, zones zoneNames, p *problems) {
	if v.again(line.name) {
		p.notef(v.path(line.name), line.value, "%s is there twice; use one", line.name)
		return
	}
	note := func(err error) { p.note(v.path(line.name), line.value, err) }
	one := func() stamp {
		s, err := zones.stamp(line, line.value)
		note(err)
		return s
	}
	switch line.name {
	case "UID":
		v.uid = line.value
	case "SUMMARY":
		v.summary = strings.Map(printable, line.value)
	case "STATUS":
		v.cancelled = strings.EqualFold(line.value, "CANCELLED")
	case "DTSTART":
		v.start, v.startText = one(), line.value
	case "DTEND":
		end := one()
		v.end, v.endText = &end, line.value
	case "DURATION":
		var err error
		v.length, err = parseISO(line.value)
		v.lengthText, v.hasLength = line.value, true
		note(err)
	case "RRULE":
		v.rule = line.value
	case "RDATE":
		v.dates = append(v.dates, zones.stamps(line, note)...)
	case "EXDATE":
		v.without = append(v.without, zones.stamps(line, note)...)
	case "RECURRENCE-ID":
		if line.parameter("RANGE") != "" {
			note(errors.New("a change to this and all later occurrences (RANGE) is not read; end the event with UNTIL and add another"))
		}
		changes := one()
		v.changes = &changes
	case "EXRULE":
		note(errors.New("EXRULE is obsolete (RFC 5545) and is not read; use EXDATE"))
	}
}

// again reports whether a line that may be there once is there already.
func (v *vevent) again(name string) bool {
	switch name {
	case "DTSTART":
		return v.startText != ""
	case "DTEND":
		return v.end != nil
	case "DURATION":
		return v.hasLength
	case "RRULE":
		return v.rule != ""
	case "RECURRENCE-ID":
		return v.changes != nil
	}
	return false
}

func printable(r rune) rune {
	if isControl(r) {
		return ' '
	}
	return r
}

// override puts changes to single occurrences into the events that they change:
// each takes an occurrence's place, or only leaves it out if it is cancelled.
func override(events []vevent, p *problems) []draft {
	byUID := map[string][]stamp{}
	for _, v := range events {
		if v.changes != nil && v.uid != "" {
			byUID[v.uid] = append(byUID[v.uid], *v.changes)
		}
	}
	var drafts []draft
	for _, v := range events {
		if v.cancelled {
			continue
		}
		if v.changes != nil && v.rule != "" {
			p.notef(v.path("RRULE"), v.rule, "the event changes one occurrence of another (RECURRENCE-ID) and so cannot recur; leave the RRULE out")
		}
		if v.changes == nil {
			v.without = append(v.without, byUID[v.uid]...)
		}
		drafts = append(drafts, v.draft)
	}
	return drafts
}

// zoneNames maps the time zones that a text defines to their IANA names.
type zoneNames map[string]string

func zonesOf(all []component) zoneNames {
	zones := zoneNames{}
	for _, c := range all {
		if c.name != "VTIMEZONE" {
			continue
		}
		var id, location string
		for _, line := range c.properties {
			switch line.name {
			case "TZID":
				id = line.value
			case "X-LIC-LOCATION":
				location = line.value
			}
		}
		if id != "" && location != "" {
			zones[id] = location
		}
	}
	return zones
}

// zone resolves a TZID by its IANA name: what a VTIMEZONE says of its offsets is
// not read, since it mostly ends in the year in which it was written. Some
// programs put their own name before it, as "/example.org/Europe/Stockholm".
func (z zoneNames) zone(id string) (window.Zone, error) {
	name := id
	if location, ok := z[id]; ok {
		name = location
	}
	if name == "" {
		return window.Zone{}, errors.New("TZID is empty; use an IANA name such as Europe/Stockholm")
	}
	zone, err := window.ParseZone(name)
	if err == nil || !strings.HasPrefix(name, "/") {
		return zone, err
	}
	elements := strings.Split(name, "/")
	for n := min(3, len(elements)-1); n >= 2; n-- {
		if zone, err := window.ParseZone(strings.Join(elements[len(elements)-n:], "/")); err == nil {
			return zone, nil
		}
	}
	return window.Zone{}, err
}

func (z zoneNames) stamp(line property, value string) (stamp, error) {
	zone := floating
	for key := range line.parameters {
		if !strings.EqualFold(key, "TZID") {
			continue
		}
		var err error
		if zone, err = z.zone(line.parameter("TZID")); err != nil {
			return stamp{}, err
		}
	}
	if strings.Contains(value, "/") {
		return stamp{}, fmt.Errorf("%s is a period; use a date or a time, and an event of its own for another length", quote(value))
	}
	return parseBasic(value, zone)
}

func (z zoneNames) stamps(line property, note func(error)) []stamp {
	var all []stamp
	for value := range strings.SplitSeq(line.value, ",") {
		s, err := z.stamp(line, strings.TrimSpace(value))
		note(err)
		if err == nil {
			all = append(all, s)
		}
		if len(all) > MaxDates {
			break
		}
	}
	return all
}
