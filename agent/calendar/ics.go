package calendar

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	ics "github.com/arran4/golang-ical"
)

// component is a component of an iCalendar text. Those that are of no use here,
// such as alarms, are read and forgotten.
type component struct {
	name       string
	index      int // among those of its name, from 0
	properties []property
}

// property is a line of a component, unfolded and taken apart.
type property struct {
	name, value string
	parameters  map[string][]string
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

// components reads an iCalendar text (RFC 5545 3.4). The library unfolds the
// lines and takes them apart; which of them belong together is decided here,
// since the library passes over what it does not expect.
func components(text string) ([]component, error) {
	if len(text) > MaxICS {
		return nil, fmt.Errorf("the text has %d bytes; use at most %d", len(text), MaxICS)
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("the text is not UTF-8; use UTF-8")
	}
	lines := ics.NewCalendarStream(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r := reader{counts: map[string]int{}}
	for number := 1; ; number++ {
		line, err := lines.ReadLine()
		if line != nil && strings.TrimSpace(string(*line)) != "" {
			if err := r.read(string(*line)); err != nil {
				return nil, fmt.Errorf("line %d, not counting those that continue another, %s: %w", number, quote(string(*line)), err)
			}
		}
		if errors.Is(err, io.EOF) {
			return r.all, r.end()
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read line %d: %w", number, err)
		}
	}
}

// maxNesting is deeper than RFC 5545 ever goes.
const maxNesting = 8

type reader struct {
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
	r.open = append(r.open, component{name: name, index: r.counts[name]})
	r.counts[name]++
	if r.counts["VEVENT"] > MaxEvents {
		return fmt.Errorf("is one event too many; use at most %d", MaxEvents)
	}
	return nil
}

func (r *reader) close(name string) error {
	top := r.open[len(r.open)-1]
	if top.name != name {
		return fmt.Errorf("ends what did not begin; end with END:%s first", shorten(top.name))
	}
	r.open = r.open[:len(r.open)-1]
	if name == "VEVENT" || name == "VTIMEZONE" {
		r.all = append(r.all, top)
	}
	return nil
}

func (r *reader) end() error {
	if len(r.open) > 0 {
		return fmt.Errorf("the text ends within %s; end it with END:%[1]s", shorten(r.open[len(r.open)-1].name))
	}
	if r.counts["VCALENDAR"] == 0 {
		return errors.New("the text is no calendar; begin with BEGIN:VCALENDAR")
	}
	return nil
}

// The bounds of lines that are taken apart, and of what stands there before the
// value: the library copies the rest of a line for each of its parameters.
const (
	maxLine       = 20_000
	maxParameters = 500
)

// readNames are the lines that are taken apart; the others are passed over.
var readNames = []string{
	"BEGIN", "END", "UID", "SUMMARY", "STATUS", "DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID", "EXRULE",
	"TZID", "X-LIC-LOCATION",
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

// valueAt returns where the value of a line begins.
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
