package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
)

// newLog returns the log of a command, which writes lines of a level and above. In a
// unit of systemd each line bears its priority, so that journalctl -p warning finds
// the warnings.
func newLog(w io.Writer, level string) *slog.Logger {
	var at slog.Level
	// The flag's enum admits only what slog can read.
	if err := at.UnmarshalText([]byte(level)); err != nil {
		at = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: at}
	if !isJournal(w, os.Getenv("JOURNAL_STREAM")) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	// The journal has the time of each line.
	options.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	h := journal{}
	for _, p := range priorities {
		h = append(h, slog.NewTextHandler(&prefixed{w: w, prefix: fmt.Sprintf("<%d>", p.priority)}, options))
	}
	return slog.New(h)
}

// isJournal reports whether a writer is the stream that systemd names (systemd.exec(5),
// JOURNAL_STREAM): a program whose output was redirected has the variable too.
func isJournal(w io.Writer, stream string) bool {
	file, ok := w.(*os.File)
	if !ok || stream == "" {
		return false
	}
	info, err := file.Stat()
	if err != nil {
		return false
	}
	status, ok := info.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", status.Dev, status.Ino)
}

// priorities are those of syslog(3) by level, the highest level first.
var priorities = []struct {
	from     slog.Level
	priority int
}{{slog.LevelError, 3}, {slog.LevelWarn, 4}, {slog.LevelInfo, 6}, {slog.Level(-1 << 30), 7}}

// journal is a slog.Handler for each of the priorities.
type journal []slog.Handler

func (j journal) of(level slog.Level) slog.Handler {
	for i, p := range priorities {
		if level >= p.from {
			return j[i]
		}
	}
	return j[len(j)-1]
}

// Enabled implements slog.Handler.
func (j journal) Enabled(ctx context.Context, level slog.Level) bool {
	return j.of(level).Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (j journal) Handle(ctx context.Context, r slog.Record) error {
	return j.of(r.Level).Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (j journal) WithAttrs(attrs []slog.Attr) slog.Handler {
	return j.with(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

// WithGroup implements slog.Handler.
func (j journal) WithGroup(name string) slog.Handler {
	return j.with(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (j journal) with(change func(slog.Handler) slog.Handler) journal {
	all := make(journal, len(j))
	for i, h := range j {
		all[i] = change(h)
	}
	return all
}

// prefixed writes each line, which comes as a whole, behind a prefix.
type prefixed struct {
	w      io.Writer
	prefix string
}

// Write implements io.Writer.
func (p *prefixed) Write(line []byte) (int, error) {
	if _, err := p.w.Write(append([]byte(p.prefix), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}
