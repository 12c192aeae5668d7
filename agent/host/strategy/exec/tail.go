package exec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// maxCatchUp is how many bytes are read before the file is emptied.
const maxCatchUp = 64 << 10

// dropped is the first line of a file that was emptied.
const dropped = "earlier output was dropped here, for it grew past the limit"

// tail follows a file that a script appends to. It keeps the last line that is not
// empty, reports progress, and empties the file when it exceeds the limit.
type tail struct {
	file   *os.File
	offset int64
	limit  int64
	report func(percent int, message string)
	buffer []byte
	lines  *script.Lines
	// text is a newer line of text than last, not yet cleaned.
	text []byte
	// last is the last line that is not empty, cleaned.
	last string
	// percent is negative until a line reports a percentage.
	percent int
	// changed reports that last or percent has changed since the last report.
	changed bool
	// class is the last class that a line named, and plan the last plan; planErr is
	// what is wrong with that plan.
	class   message.Class
	plan    *message.ChangeSet
	planErr error
}

// maxPlanLine bounds a line with a plan, in bytes.
const maxPlanLine = message.MaxPlanBody + 1<<10

func newTail(file *os.File, offset, limit int64, report func(int, string)) *tail {
	t := &tail{file: file, offset: offset, limit: limit, report: report, buffer: make([]byte, 32<<10), percent: -1}
	t.lines = script.NewLongLines(maxPlanLine, t.takeLine)
	return t
}

// follow reads up to the present end of the file and no further, so that endless
// output does not block the caller. It reports once, for the last line.
func (t *tail) follow() {
	if info, err := t.file.Stat(); err != nil {
		t.fail(err)
	} else {
		t.readTo(info.Size())
		if info.Size() > t.limit {
			t.drop()
		}
	}
	t.reportChange()
}

// finish ends the last line, which may lack a line end.
func (t *tail) finish() {
	t.lines.End()
	t.reportChange()
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

// drop empties the file. Output between the last read and the truncation is lost.
func (t *tail) drop() {
	t.readTo(t.offset + maxCatchUp)
	if err := t.file.Truncate(0); err != nil {
		t.fail(err)
		return
	}
	t.restart()
	t.note()
}

// note writes the line dropped. It begins with a line end, because the script may
// have begun a line since.
func (t *tail) note() {
	if _, err := t.file.WriteString("\n" + dropped + "\n"); err != nil {
		t.fail(err)
	}
}

// restart starts over at the beginning of an emptied file.
func (t *tail) restart() {
	t.offset = 0
	t.lines.Drop()
}

// takeLine takes a complete line. Text is cleaned only when it is shown, because
// most lines never are.
func (t *tail) takeLine(line []byte) {
	switch {
	case script.Blank(line) || string(line) == dropped:
	case bytes.IndexByte(line, '{') < 0:
		t.text, t.changed = append(t.text[:0], line[:min(len(line), script.MaxLine)]...), true
	case isPlanLine(line):
		t.plan, t.planErr = readPlanLine(line)
	default:
		t.take(parseLine(line[:min(len(line), script.MaxLine)]))
	}
}

// isPlanLine reports whether a line is an object whose first member is a plan. Such a
// line may be long, and is not shown.
func isPlanLine(line []byte) bool {
	rest, isObject := bytes.CutPrefix(bytes.TrimSpace(line), []byte("{"))
	return isObject && bytes.HasPrefix(bytes.TrimSpace(rest), []byte(`"plan"`))
}

// readPlanLine reads a line such as {"plan": {"changes": [...]}}.
func readPlanLine(line []byte) (*message.ChangeSet, error) {
	var object struct {
		Plan json.RawMessage `json:"plan"`
	}
	if len(line) >= maxPlanLine {
		return nil, fmt.Errorf("the line with the plan has more than %d bytes", maxPlanLine-1)
	}
	if err := json.Unmarshal(line, &object); err != nil {
		return nil, fmt.Errorf("the line with the plan is not JSON: %w", err)
	}
	plan, err := message.DecodePlan(object.Plan)
	return &plan, err
}

func (t *tail) take(p progress) {
	if p.class != "" {
		t.class = p.class
	}
	if p.percent >= 0 {
		t.percent = p.percent
	}
	if p.message != "" {
		t.last, t.text = p.message, t.text[:0]
	}
	t.changed = true
}

// fail reports that the output cannot be followed. The script continues.
func (t *tail) fail(err error) {
	t.report(t.percent, "cannot follow output: "+script.Clean([]byte(err.Error())))
}

func (t *tail) reportChange() {
	if len(t.text) > 0 {
		t.take(progress{percent: -1, message: script.Clean(t.text)})
	}
	if t.changed {
		t.report(t.percent, t.last)
		t.changed = false
	}
}

// progress is the progress in one line of output. percent is negative and message
// empty if the line does not contain them.
type progress struct {
	percent int
	message string
	class   message.Class
}

// parseLine parses one line: a progress object, or text. An invalid progress
// object is text with a note of the error.
func parseLine(line []byte) progress {
	object := map[string]json.RawMessage{}
	if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) || json.Unmarshal(line, &object) != nil {
		return progress{percent: -1, message: script.Clean(line)}
	}
	p, err := readProgress(object)
	if err != nil {
		return progress{percent: -1, message: text.Fit(fmt.Sprintf("%s (%s)", text.Fit(script.Clean(line), script.MaxText/2, "..."), err), script.MaxText, "...")}
	}
	return p
}

func readProgress(object map[string]json.RawMessage) (progress, error) {
	p := progress{percent: -1}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := object[key]
		switch key {
		case "progress":
			var percent *float64
			if json.Unmarshal(value, &percent) != nil || percent == nil || *percent < 0 || *percent > 100 {
				return p, fmt.Errorf("no progress: \"progress\" is %s; use 0 to 100", text.Fit(script.Clean(value), 50, "..."))
			}
			p.percent = int(*percent)
		case "message":
			var said *string
			if json.Unmarshal(value, &said) != nil || said == nil {
				return p, fmt.Errorf("no progress: \"message\" is %s; use a string", text.Fit(script.Clean(value), 50, "..."))
			}
			p.message = script.Clean([]byte(*said))
		case "class":
			class, err := readClass(value)
			if err != nil {
				return p, fmt.Errorf("no class: %w", err)
			}
			p.class = class
		default:
			return p, fmt.Errorf("no progress: unknown key %q; use \"progress\", \"message\" and \"class\"", text.Fit(script.Clean([]byte(key)), 50, "..."))
		}
	}
	return p, nil
}

func readClass(value json.RawMessage) (message.Class, error) {
	var name *string
	if json.Unmarshal(value, &name) != nil || name == nil {
		return "", fmt.Errorf("\"class\" is %s; use a string", text.Fit(script.Clean(value), 50, "..."))
	}
	return message.ParseClass(*name)
}
