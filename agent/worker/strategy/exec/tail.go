package exec

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/script"
)

// maxCatchUp bounds the last look before output is dropped, in bytes.
const maxCatchUp = 64 << 10

// dropped is what a file begins with after it grew too large.
const dropped = "earlier output was dropped here, for it grew past the limit"

// tail follows a file that a script appends to, keeps the last line that says
// something, tells of progress, and empties the file when it grows too large.
type tail struct {
	file   *os.File
	offset int64
	limit  int64
	report func(percent int, message string)
	buffer []byte
	lines  *script.Lines
	// text is the last line of text that is not in last yet.
	text []byte
	// last is the last line that is not empty, in words.
	last string
	// percent is negative as long as no line has told.
	percent int
	// news tells that last or percent has changed since the last report.
	news bool
}

func newTail(file *os.File, offset, limit int64, report func(int, string)) *tail {
	t := &tail{file: file, offset: offset, limit: limit, report: report, buffer: make([]byte, 32<<10), percent: -1}
	t.lines = script.NewLines(t.takeLine)
	return t
}

// follow reads what the file holds at this moment, and no further: a script
// that prints without end must not keep the caller from its other duties. It
// reports once, for the latest of what it read.
func (t *tail) follow() {
	if info, err := t.file.Stat(); err != nil {
		t.fail(err)
	} else {
		t.readTo(info.Size())
		if info.Size() > t.limit {
			t.drop()
		}
	}
	t.tell()
}

// finish takes the last line as whole.
func (t *tail) finish() {
	t.lines.End()
	t.tell()
}

func (t *tail) readTo(size int64) {
	if size < t.offset {
		t.restart()
	}
	for t.offset < size {
		n, err := t.file.ReadAt(t.buffer[:min(size-t.offset, int64(len(t.buffer)))], t.offset)
		_, _ = t.lines.Write(t.buffer[:n]) // It never fails.
		t.offset += int64(n)
		if err != nil && !errors.Is(err, io.EOF) {
			t.fail(err)
		}
		if err != nil || n == 0 {
			return
		}
	}
}

// drop empties the file. What the script prints between the last look and the
// cut is lost with the rest.
func (t *tail) drop() {
	t.readTo(t.offset + maxCatchUp)
	if err := t.file.Truncate(0); err != nil {
		t.fail(err)
		return
	}
	t.restart()
	t.note()
}

// note says in the file that it was emptied. It is a line of its own also where
// the script has begun one since, or prints none at all.
func (t *tail) note() {
	if _, err := t.file.WriteString("\n" + dropped + "\n"); err != nil {
		t.fail(err)
	}
}

// restart begins with an empty file.
func (t *tail) restart() {
	t.offset = 0
	t.lines.Drop()
}

// takeLine takes a whole line. Text is only looked at when it is to be shown,
// because most of it never is.
func (t *tail) takeLine(line []byte) {
	switch {
	case script.Blank(line) || string(line) == dropped:
	case bytes.IndexByte(line, '{') < 0:
		t.text, t.news = append(t.text[:0], line...), true
	default:
		t.take(parseLine(line))
	}
}

func (t *tail) take(p progress) {
	if p.percent >= 0 {
		t.percent = p.percent
	}
	if p.message != "" {
		t.last, t.text = p.message, t.text[:0]
	}
	t.news = true
}

// fail tells people that the output cannot be followed; the script goes on.
func (t *tail) fail(err error) {
	t.report(t.percent, "cannot follow output: "+script.Clean([]byte(err.Error())))
}

func (t *tail) tell() {
	if len(t.text) > 0 {
		t.take(progress{-1, script.Clean(t.text)})
	}
	if t.news {
		t.report(t.percent, t.last)
		t.news = false
	}
}
