package sim

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"
)

// kept is how many of the last lines a trace keeps.
const kept = 250

// trace records what happens in a seed: the last lines, how often each thing
// happened, and the violations.
type trace struct {
	mu sync.Mutex
	// print gets each line at once; nil when nobody reads along.
	print      func(string)
	lines      []line
	next       int
	counts     map[string]int
	visits     map[visit]int
	violations []string
}

// visit is a label that processes of a kind came to.
type visit struct{ kind, label string }

// line is one thing that happened. It is formatted only when it is read: most
// lines are not.
type line struct {
	at     time.Time
	format string
	args   []any
}

func (l line) String() string {
	return l.at.UTC().Format("15:04:05.000 ") + strings.TrimSpace(fmt.Sprintf(l.format, l.args...))
}

// note adds a line.
func (t *trace) note(format string, args ...any) {
	l := line{time.Now(), format, args}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.print != nil {
		t.print(l.String())
	}
	if len(t.lines) < kept {
		t.lines = append(t.lines, l)
		return
	}
	t.lines[t.next] = l
	t.next = (t.next + 1) % kept
}

// count counts what happens.
func (t *trace) count(what string) {
	t.mu.Lock()
	t.counts[what]++
	t.mu.Unlock()
}

// visit counts how often processes of a kind come to a label.
func (t *trace) visit(kind, label string) {
	t.mu.Lock()
	t.visits[visit{kind, label}]++
	t.mu.Unlock()
}

// violated records that an invariant does not hold.
func (t *trace) violated(format string, args ...any) {
	t.note("VIOLATION: "+format, args...)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.violations = append(t.violations, fmt.Sprintf(format, args...))
}

// broken reports whether there is a violation.
func (t *trace) broken() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.violations) > 0
}

func (t *trace) report() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := Report{Violations: t.violations, Counts: maps.Clone(t.counts)}
	for v, n := range t.visits {
		r.Counts[v.kind+" at "+v.label] += n
	}
	if len(r.Violations) == 0 {
		return r
	}
	for i := range t.lines {
		r.Trace = append(r.Trace, t.lines[(t.next+i)%len(t.lines)].String())
	}
	return r
}

// logger writes the log of a process into the trace.
func (w *World) logger(process string) *slog.Logger { return slog.New(logHandler{w, process}) }

type logHandler struct {
	w       *World
	process string
}

func (h logHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	h.w.note("%s says: %v", h.process, logLine(r.Clone()))
	return nil
}

func (h logHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h logHandler) WithGroup(string) slog.Handler      { return h }

// logLine formats a log record for the trace.
type logLine slog.Record

func (l logLine) String() string {
	r := slog.Record(l)
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "tenant" && a.Key != "host" {
			text += " " + a.String()
		}
		return true
	})
	return text
}
