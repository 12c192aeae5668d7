package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
)

// event is one server-sent event.
type event struct {
	kind string
	id   string
	data []byte
}

// events reads server-sent events (WHATWG HTML 9.2), with lines that end in LF
// or CRLF.
type events struct {
	lines *bufio.Scanner
	// event is the one that next has read.
	event event
	// comment is called with each comment.
	comment func()
	// err is why next found none; nil at the end of the stream.
	err error
}

// errEventTooLarge is a line, or an event of several, that would take more
// memory than any answer may.
var errEventTooLarge = errors.New("an event is larger than 16 MiB")

func newEvents(r io.Reader, comment func()) *events {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxBody)
	return &events{lines: lines, comment: comment}
}

// next waits for an event, and reports whether one came. One that the stream
// breaks off in is lost on purpose: the server sends it again.
func (s *events) next() bool {
	s.event = event{}
	for begun := false; s.lines.Scan(); {
		line := s.lines.Bytes()
		if len(line) == 0 {
			if begun {
				return true
			}
			continue
		}
		if line[0] == ':' {
			s.comment()
		}
		begun = s.event.take(line) || begun
		if len(s.event.data) > maxBody {
			s.err = errEventTooLarge
			return false
		}
	}
	s.err = s.lines.Err()
	if errors.Is(s.err, bufio.ErrTooLong) {
		s.err = errEventTooLarge
	}
	return false
}

// isEventID reports whether a text may become the header Last-Event-ID: an id is
// the identity of a log and numbers.
func isEventID(id string) bool {
	return len(id) <= maxEventID && strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyz-") == ""
}

// maxEventID bounds an id, in bytes.
const maxEventID = 100

// take adds a line to the event, and reports whether the line counts: comments
// and unknown fields do not.
func (e *event) take(line []byte) bool {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		e.kind = string(value)
	case "id":
		if isEventID(string(value)) {
			e.id = string(value)
		}
	case "data":
		if e.data != nil {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		if e.data == nil {
			e.data = []byte{}
		}
	default:
		return false
	}
	return true
}
