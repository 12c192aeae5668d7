package calendar

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	ics "github.com/arran4/golang-ical"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

var icsNames = names{start: "DTSTART", end: "DTEND", length: "DURATION", rule: "RRULE", dates: "RDATE", without: "EXDATE"}

// vevent is an event of an iCalendar text. override merges a vevent that changes
// one occurrence into the vevent that it changes.
type vevent struct {
	draft
	uid       string
	changes   *dateTime // RECURRENCE-ID
	cancelled bool
	// sequence and stamp (DTSTAMP, in UTC) order the revisions of an event.
	sequence int
	stamp    string
}

// readICS parses the events of an iCalendar text.
func readICS(text string, p *problems) []draft {
	all, err := components(text)
	if err != nil {
		p.note("ics", "", err)
		return nil
	}
	zones := zonesOf(all)
	p.lines = map[string]int{}
	var events []vevent
	for _, c := range all {
		if c.name != "VEVENT" {
			continue
		}
		v := vevent{draft: draft{index: c.index, prefix: fmt.Sprintf("ics.VEVENT[%d].", c.index), names: icsNames}}
		before := len(p.found)
		p.lines[v.path("DTSTART")] = c.line
		for _, line := range c.properties {
			p.lines[v.path(line.name)] = line.line
			v.read(line, zones, p)
		}
		if v.startText == "" && len(p.found) == before {
			p.notef(v.path("DTSTART"), "", "the event has no DTSTART; add one")
		}
		events = append(events, v)
	}
	switch {
	case len(p.found) > 0:
		return nil
	case len(events) == 0 && p.mayBeEmpty:
		return nil
	case len(events) == 0:
		p.notef("ics", "", "the text has no VEVENT; add one, or delete the calendar")
		return nil
	}
	drafts := override(newest(events, p), p)
	happen := slices.DeleteFunc(drafts, func(d draft) bool { return d.never(p) })
	if len(drafts) > 0 && len(happen) == 0 && !p.mayBeEmpty {
		p.notef("ics", "", "no event of the text ever happens; the first: %w", p.leftOut[0])
	}
	return happen
}

// newest returns the newest revision of each event and of each change of an
// occurrence: the highest SEQUENCE, of equal ones the latest DTSTAMP (RFC 5546
// 2.1.5). Exports may hold earlier revisions besides.
func newest(events []vevent, p *problems) []vevent {
	best := map[string]int{}
	for i, v := range events {
		if key := v.identity(); key != "" {
			if old, found := best[key]; !found || !v.precedes(events[old]) {
				best[key] = i
			}
		}
	}
	var kept []vevent
	for i, v := range events {
		key := v.identity()
		if key == "" || best[key] == i {
			kept = append(kept, v)
			continue
		}
		p.leaveOut(v.path("UID"), v.uid, fmt.Errorf("is an earlier revision of VEVENT[%d]", events[best[key]].index))
	}
	return kept
}

// identity is equal for the revisions of one event or change; empty for an event
// without UID, which has one revision.
func (v *vevent) identity() string {
	switch {
	case v.uid == "":
		return ""
	case v.changes == nil:
		return v.uid
	case v.changes.date || v.changes.zone == floating:
		return v.uid + "\n" + v.changes.String()
	}
	return v.uid + "\n" + strconv.FormatInt(v.changes.instant().Unix(), 10)
}

// precedes reports whether the event is an earlier revision than another.
func (v *vevent) precedes(other vevent) bool {
	return cmp.Or(cmp.Compare(v.sequence, other.sequence), cmp.Compare(v.stamp, other.stamp)) < 0
}

// never reports whether the event has no length, or ends before it starts. It
// notes that the event is left out. Real exports have such events: reminders,
// and series that were split at their first occurrence.
func (d *draft) never(p *problems) bool {
	switch {
	case !d.start.date && d.end == nil && !d.hasLength:
		p.leaveOut(d.path("DTSTART"), d.startText, errors.New("has neither DTEND nor DURATION, and so no length"))
	case d.end != nil && !d.start.date && d.empty():
		p.leaveOut(d.path("DTEND"), d.endText, errors.New("is the start, so the event has no length"))
	case d.end == nil && d.hasLength && d.length == 0:
		p.leaveOut(d.path("DURATION"), d.lengthText, errors.New("is no length"))
	case d.ended():
		p.leaveOut(d.path("RRULE"), d.rule, errors.New("ends before the event starts (UNTIL)"))
	default:
		return false
	}
	return true
}

func (d *draft) empty() bool {
	length, _, err := d.toEnd()
	return err == nil && length == 0
}

// ended reports whether the rule ends before the start and nothing else happens.
func (d *draft) ended() bool {
	if d.rule == "" || len(d.dates) > 0 {
		return false
	}
	parts, err := splitRule(d.rule)
	if err != nil || parts["UNTIL"] == "" {
		return false
	}
	_, err = untilOf(parts["UNTIL"], d.start)
	return errors.Is(err, errEnded)
}

// read parses one line of an event. It ignores lines that do not matter for the
// time of the event.
func (v *vevent) read(line property, zones zoneNames, p *problems) {
	if v.repeated(line.name) {
		p.notef(v.path(line.name), line.value, "%s is repeated; use one", line.name)
		return
	}
	note := func(err error) { p.note(v.path(line.name), line.value, err) }
	one := func() dateTime {
		s, err := zones.dateTime(line, line.value)
		note(err)
		return s
	}
	switch line.name {
	case "UID":
		v.uid = line.value
	case "SUMMARY":
		v.summary = strings.Map(printable, line.value)
	case "SEQUENCE":
		var err error
		v.sequence, err = number(line.value, 0, math.MaxInt32)
		if err != nil {
			note(fmt.Errorf("SEQUENCE %w", err))
		}
	case "DTSTAMP":
		v.stamp = line.value
	case "STATUS":
		v.cancelled = strings.EqualFold(line.value, "CANCELLED")
	case "DTSTART":
		v.start, v.startText = one(), line.value
	case "DTEND":
		end := one()
		if v.end, v.endText = &end, line.value; end.date && end == v.start {
			v.end = nil // Written for a single day by programs that count the last day.
		}
	case "DURATION":
		var err error
		v.length, err = parseISO(line.value)
		v.lengthText, v.hasLength = line.value, true
		note(err)
	case "RRULE":
		v.rule = line.value
	case "RDATE":
		v.dates = append(v.dates, zones.dateTimes(line, note)...)
	case "EXDATE":
		v.without = append(v.without, zones.dateTimes(line, note)...)
	case "RECURRENCE-ID":
		if line.parameter("RANGE") != "" {
			note(errors.New("a change to this and all later occurrences (RANGE) is not supported; end the event with UNTIL and add another"))
		}
		changes := one()
		v.changes = &changes
	case "EXRULE":
		note(errors.New("EXRULE is obsolete (RFC 5545) and not supported; use EXDATE"))
	}
}

// repeated reports whether the event already has a line that it may have once.
func (v *vevent) repeated(name string) bool {
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

// override merges the changes of single occurrences into the events that they
// change. A change replaces the occurrence, or excludes it if cancelled.
func override(events []vevent, p *problems) []draft {
	byUID := map[string][]dateTime{}
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

// zoneNames are the time zones defined in a text, by their names there.
type zoneNames map[string]vtimezone

// vtimezone is what a VTIMEZONE says: its IANA name, if it has one, and its rules.
type vtimezone struct {
	location string
	rules    []observance
}

func zonesOf(all []component) zoneNames {
	zones := zoneNames{}
	for _, c := range all {
		if c.name != "VTIMEZONE" {
			continue
		}
		var id string
		zone := vtimezone{rules: rulesOf(c.parts)}
		for _, line := range c.properties {
			switch line.name {
			case "TZID":
				id = line.value
			case "X-LIC-LOCATION":
				zone.location = line.value
			}
		}
		if id != "" {
			zones[id] = zone
		}
	}
	return zones
}

// zone resolves a TZID by its name, of IANA or of Windows. It ignores the offsets in a
// VTIMEZONE of such a name, because they mostly end in the year of writing. Some programs put
// a prefix before the name, such as "/example.org/Europe/Stockholm".
func (z zoneNames) zone(id string) (window.Zone, error) {
	name := cmp.Or(z[id].location, id)
	if name == "" {
		return window.Zone{}, errors.New("TZID is empty; use an IANA name such as Europe/Stockholm")
	}
	zone, err := window.ParseZone(name)
	if err == nil {
		return zone, nil
	}
	if zone, known := windowsZone(name); known {
		return zone, nil
	}
	elements := strings.Split(name, "/")
	for n := min(3, len(elements)-1); n >= 2 && elements[0] == ""; n-- {
		if zone, err := window.ParseZone(strings.Join(elements[len(elements)-n:], "/")); err == nil {
			return zone, nil
		}
	}
	if zone, known := likeRules(z[id].rules); known {
		return zone, nil
	}
	return window.Zone{}, err
}

func (z zoneNames) dateTime(line property, value string) (dateTime, error) {
	zone := floating
	for key := range line.parameters {
		if !strings.EqualFold(key, "TZID") {
			continue
		}
		var err error
		if zone, err = z.zone(line.parameter("TZID")); err != nil {
			return dateTime{}, err
		}
	}
	if strings.Contains(value, "/") {
		return dateTime{}, fmt.Errorf("%s is a period; use a date or a time, and a separate event for another duration", quote(value))
	}
	return parseBasic(value, zone)
}

func (z zoneNames) dateTimes(line property, note func(error)) []dateTime {
	var all []dateTime
	for value := range strings.SplitSeq(line.value, ",") {
		s, err := z.dateTime(line, strings.TrimSpace(value))
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

// component is a VEVENT or VTIMEZONE of an iCalendar text. Other components,
// such as alarms, are parsed and discarded.
type component struct {
	name       string
	index      int // position among the components of this name, from 0
	line       int // of BEGIN
	properties []property
	// parts are STANDARD and DAYLIGHT of a VTIMEZONE.
	parts []component
}

// property is an unfolded and parsed line of a component.
type property struct {
	name, value string
	parameters  map[string][]string
	line        int // the first, of one that is folded
}

// parameter returns the first value of a parameter.
func (p property) parameter(name string) string {
	for key, values := range p.parameters {
		if strings.EqualFold(key, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// components parses an iCalendar text (RFC 5545 3.4). The library unfolds and
// splits the lines. The nesting of components is parsed here, because the
// library silently skips unexpected components.
func components(text string) ([]component, error) {
	if len(text) > MaxICS {
		return nil, fmt.Errorf("the text has %d bytes; use at most %d", len(text), MaxICS)
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("the text is not UTF-8; use UTF-8")
	}
	lines := ics.NewCalendarStream(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r := reader{counts: map[string]int{}}
	numbers := lineNumbers(strings.TrimPrefix(text, "\ufeff"))
	for {
		line, err := lines.ReadLine()
		if line != nil && len(*line) > 0 {
			r.line, numbers = numbers[0], numbers[1:]
		}
		if line != nil && strings.TrimSpace(string(*line)) != "" {
			if err := r.read(string(*line)); err != nil {
				return nil, fmt.Errorf("line %d, %s: %w", r.line, quote(string(*line)), err)
			}
		}
		if errors.Is(err, io.EOF) {
			return r.all, r.end()
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read line %d: %w", r.line, err)
		}
	}
}

// lineNumbers returns for each unfolded line of a text that is not empty the number of the
// line that it begins in, as the library unfolds them (RFC 5545 3.1).
func lineNumbers(text string) []int {
	var numbers []int
	number, unfolded := 0, 0
	for line := range strings.Lines(text) {
		number++
		line, ended := strings.CutSuffix(line, "\n")
		if number > 1 && line != "" && (line[0] == ' ' || line[0] == '\t') {
			line = line[1:]
		} else {
			unfolded = 0
		}
		if ended {
			line = strings.TrimSuffix(line, "\r")
		}
		if unfolded == 0 && line != "" {
			numbers = append(numbers, number)
		}
		unfolded += len(line)
	}
	return numbers
}

// maxNesting is deeper than RFC 5545 ever goes.
const maxNesting = 8

type reader struct {
	line   int
	open   []component
	all    []component
	counts map[string]int
}

func (r *reader) read(line string) error {
	p, err := parseLine(line)
	switch {
	case err != nil:
		return err
	case p.name == "BEGIN":
		return r.begin(strings.ToUpper(p.value))
	case len(r.open) == 0:
		return errors.New("is outside of any component; begin with BEGIN:VCALENDAR")
	case p.name == "END":
		return r.close(strings.ToUpper(p.value))
	}
	p.line = r.line
	top := &r.open[len(r.open)-1]
	top.properties = append(top.properties, p)
	return nil
}

func (r *reader) begin(name string) error {
	switch {
	case len(r.open) == 0 && name != "VCALENDAR":
		return errors.New("is outside of any calendar; begin with BEGIN:VCALENDAR")
	case len(r.open) == maxNesting:
		return fmt.Errorf("is nested too deep; use at most %d levels", maxNesting)
	}
	r.open = append(r.open, component{name: name, index: r.counts[name], line: r.line})
	r.counts[name]++
	if r.counts["VEVENT"] > MaxEvents {
		return fmt.Errorf("is one event too many; use at most %d", MaxEvents)
	}
	return nil
}

func (r *reader) close(name string) error {
	top := r.open[len(r.open)-1]
	if top.name != name {
		return fmt.Errorf("does not match BEGIN:%s; add END:%[1]s before it", shorten(top.name))
	}
	r.open = r.open[:len(r.open)-1]
	switch name {
	case "VEVENT", "VTIMEZONE":
		r.all = append(r.all, top)
	case "STANDARD", "DAYLIGHT":
		outer := &r.open[len(r.open)-1]
		outer.parts = append(outer.parts, top)
	}
	return nil
}

func (r *reader) end() error {
	if len(r.open) > 0 {
		return fmt.Errorf("the text ends within %s; end it with END:%[1]s", shorten(r.open[len(r.open)-1].name))
	}
	if r.counts["VCALENDAR"] == 0 {
		return errors.New("the text is not a calendar; begin with BEGIN:VCALENDAR")
	}
	return nil
}

// The limits, in bytes, of a parsed line and of its name with parameters. The
// library copies the rest of a line for each parameter.
const (
	maxLine       = 20_000
	maxParameters = 500
)

// readNames are the names of the lines that are parsed; other lines are ignored.
var readNames = []string{
	"BEGIN", "END", "UID", "SEQUENCE", "DTSTAMP", "SUMMARY", "STATUS", "DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID", "EXRULE",
	"TZID", "X-LIC-LOCATION", "TZOFFSETFROM", "TZOFFSETTO",
}

func parseLine(line string) (property, error) {
	const form = "is not a line of iCalendar; use NAME:VALUE"
	line = strings.TrimRight(line, "\r")
	end := strings.IndexAny(line, ":;")
	if end <= 0 || strings.ContainsFunc(line[:end], notInName) {
		return property{}, errors.New(form)
	}
	name := strings.ToUpper(line[:end])
	switch {
	case !slices.Contains(readNames, name):
		return property{name: name}, nil
	case len(line) > maxLine:
		return property{}, fmt.Errorf("has %d bytes; use at most %d, and several lines", len(line), maxLine)
	}
	if n := valueAt(line); n > maxParameters {
		return property{}, fmt.Errorf("has parameters of %d bytes; use at most %d", n, maxParameters)
	}
	parsed, err := ics.ParseProperty(ics.ContentLine(line))
	if err != nil {
		return property{}, err
	}
	if parsed == nil {
		return property{}, errors.New(form)
	}
	return property{name: name, value: strings.TrimSpace(parsed.Value), parameters: parsed.ICalParameters}, nil
}

// valueAt returns the index at which the value of a line begins.
func valueAt(line string) int {
	quoted := false
	for i := range len(line) {
		switch {
		case line[i] == '"':
			quoted = !quoted
		case line[i] == ':' && !quoted:
			return i + 1
		}
	}
	return len(line)
}

func notInName(r rune) bool {
	return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// isoDuration is RFC 5545 3.3.6 without a minus. Its numbers of digits keep the
// sum within a time.Duration.
var isoDuration = text.Pattern(`^\+?P(?:(\d{1,4})W|(?:(\d{1,4})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,7})M)?(?:(\d{1,9})S)?)?)$`)

// parseISO parses a DURATION of iCalendar, such as PT4H. A day is 24 hours.
func parseISO(text string) (time.Duration, error) {
	match := isoDuration().FindStringSubmatch(text)
	if match == nil || strings.HasSuffix(text, "P") || strings.HasSuffix(text, "T") {
		return 0, fmt.Errorf("%s is not a duration; use one such as PT4H or P1DT12H", quote(text))
	}
	var length time.Duration
	for i, unit := range []time.Duration{7 * day, day, time.Hour, time.Minute, time.Second} {
		if match[i+1] != "" {
			n, err := strconv.Atoi(match[i+1])
			if err != nil {
				return 0, err
			}
			length += time.Duration(n) * unit
		}
	}
	return length, nil
}
