package script

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// MaxText is the largest size in bytes of a line that is shown to people.
const MaxText = 1000

// escape is a terminal's control sequence (ECMA-48 5.4), such as a colour.
var escape = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]`)

// Clean turns a line of output into text for people: valid UTF-8 of printable
// characters, at most MaxText bytes. Of text overwritten by carriage returns it
// keeps the last, as a terminal does.
func Clean(line []byte) string {
	valid := strings.ToValidUTF8(string(escape.ReplaceAll(line, nil)), "\uFFFD")
	for _, part := range slices.Backward(strings.Split(valid, "\r")) {
		if shown := printable(part); shown != "" {
			return text.Fit(shown, MaxText, "...")
		}
	}
	return ""
}

func printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		default:
			return -1
		}
	}, text))
}

// Blank reports whether a line shows nothing. It must be fast: it is called for
// each line of an output that may have hundreds of megabytes.
func Blank(line []byte) bool {
	if bytes.IndexByte(line, '\x1b') < 0 && bytes.ContainsFunc(line[:min(len(line), 100)], func(r rune) bool { return r > ' ' && r < 0x7f }) {
		return false
	}
	return Clean(line) == ""
}

// MaxLine is the number of bytes that are kept of a line.
const MaxLine = 8 << 10

// Lines is a writer that splits its input into lines, without line ends and of a
// limited length. It holds one line at a time.
type Lines struct {
	each func(line []byte)
	line []byte
	max  int
}

// NewLines returns Lines that pass each line to each, at most MaxLine long; each must
// not retain it.
func NewLines(each func(line []byte)) *Lines { return NewLongLines(MaxLine, each) }

// NewLongLines is NewLines with lines of at most limit bytes.
func NewLongLines(limit int, each func(line []byte)) *Lines { return &Lines{each: each, max: limit} }

// Write implements io.Writer. It never fails.
func (l *Lines) Write(data []byte) (int, error) {
	size := len(data)
	for {
		part, rest, complete := bytes.Cut(data, []byte("\n"))
		l.line = append(l.line, part[:min(len(part), l.max-len(l.line))]...)
		if !complete {
			return size, nil
		}
		l.End()
		data = rest
	}
}

// End ends the current line.
func (l *Lines) End() {
	l.each(l.line)
	l.Drop()
}

// Drop discards the current line. The room of a long one is given back.
func (l *Lines) Drop() {
	if l.line = l.line[:0]; cap(l.line) > 2*MaxLine {
		l.line = nil
	}
}
