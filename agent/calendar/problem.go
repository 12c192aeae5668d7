package calendar

import (
	"fmt"
	"strconv"
	"strings"
)

// Problem tells what is wrong with a calendar.
type Problem struct {
	// Path is where, such as "events[2].rrule" or "ics.VEVENT[2].DTSTART";
	// events count from 0.
	Path string
	// Value is what stands there, cut if it is long.
	Value string
	// Err names the value and says what would be right.
	Err error
}

// Error returns the path and what is wrong there.
func (p Problem) Error() string { return p.Path + ": " + p.Err.Error() }

// Unwrap returns the cause.
func (p Problem) Unwrap() error { return p.Err }

// maxProblems is how many problems of a calendar are told of at once.
const maxProblems = 20

// problems collects what is wrong with a calendar.
type problems struct{ found []Problem }

func (p *problems) note(path, value string, err error) {
	if err != nil && !p.full() {
		p.found = append(p.found, Problem{Path: path, Value: shorten(value), Err: err})
	}
}

func (p *problems) notef(path, value, format string, args ...any) {
	p.note(path, value, fmt.Errorf(format, args...))
}

// full tells that looking for more is not worth the work.
func (p *problems) full() bool { return len(p.found) >= maxProblems }

// quote puts a value into an error, cut where it would drown the message.
func quote(text string) string { return strconv.Quote(shorten(text)) }

func shorten(text string) string {
	const limit = 80
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
