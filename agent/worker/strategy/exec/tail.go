package exec

import (
	"bytes"
	"errors"
	"io"
	"os"
)

const (
	// maxLine is how much of a line is kept, in bytes; the rest of it is in the
	// file alone.
	maxLine = 8 << 10
	// maxCatchUp bounds the last look before output is dropped, in bytes.
	maxCatchUp = 64 << 10
)

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
	line   []byte
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
	return &tail{file: file, offset: offset, limit: limit, report: report, buffer: make([]byte, 32<<10), percent: -1}
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
	t.endLine()
	t.tell()
}

func (t *tail) readTo(size int64) {
	if size < t.offset {
		t.offset, t.line = 0, t.line[:0]
	}
	for t.offset < size {
		n, err := t.file.ReadAt(t.buffer[:min(size-t.offset, int64(len(t.buffer)))], t.offset)
		t.feed(t.buffer[:n])
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
	t.offset, t.line = 0, t.line[:0]
	if _, err := t.file.WriteString(dropped + "\n"); err != nil {
		t.fail(err)
	}
}

func (t *tail) feed(data []byte) {
	for {
		part, rest, whole := bytes.Cut(data, []byte("\n"))
		t.line = append(t.line, part[:min(len(part), maxLine-len(t.line))]...)
		if !whole {
			return
		}
		t.endLine()
		data = rest
	}
}

// endLine takes a whole line. Text is only looked at when it is to be shown,
// because most of it never is.
func (t *tail) endLine() {
	switch {
	case blank(t.line) || string(t.line) == dropped:
	case bytes.IndexByte(t.line, '{') < 0:
		t.text, t.news = append(t.text[:0], t.line...), true
	default:
		t.take(parseLine(t.line))
	}
	t.line = t.line[:0]
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
	t.report(t.percent, "cannot follow output: "+clean([]byte(err.Error())))
}

func (t *tail) tell() {
	if len(t.text) > 0 {
		t.take(progress{-1, clean(t.text)})
	}
	if t.news {
		t.report(t.percent, t.last)
		t.news = false
	}
}
