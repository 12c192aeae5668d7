package script

import "bytes"

// MaxLine is how much of a line is kept, in bytes.
const MaxLine = 8 << 10

// Lines cuts what is written to it into lines, each without its end and at most
// MaxLine long. It never keeps more than one of them.
type Lines struct {
	each func(line []byte)
	line []byte
}

// NewLines has each line handed to each, which must not keep it.
func NewLines(each func(line []byte)) *Lines { return &Lines{each: each} }

// Write implements io.Writer. It never fails.
func (l *Lines) Write(data []byte) (int, error) {
	size := len(data)
	for {
		part, rest, whole := bytes.Cut(data, []byte("\n"))
		l.line = append(l.line, part[:min(len(part), MaxLine-len(l.line))]...)
		if !whole {
			return size, nil
		}
		l.End()
		data = rest
	}
}

// End takes the line that was begun as whole.
func (l *Lines) End() {
	l.each(l.line)
	l.line = l.line[:0]
}

// Drop forgets the line that was begun.
func (l *Lines) Drop() { l.line = l.line[:0] }
