// Package throttle limits how often a line is logged that repeats or that others can
// cause, such as during a flood of hosts or while a disk is full.
//
// It decides which lines are written and never changes them.
package throttle

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Again is how often it is logged that something still fails.
const Again = 10 * time.Minute

// maxMessages bounds the messages of which a logger remembers when they were
// written.
const maxMessages = 100

// Log returns a logger that writes the first few lines of each message in an
// interval. At the end of the interval it writes how many lines it held back.
func Log(to *slog.Logger, few int, interval time.Duration) *slog.Logger {
	return slog.New(&handler{Handler: to.Handler(), limits: &limits{few: few, interval: interval, byMessage: map[string]*limit{}}})
}

// handler is a slog.Handler that leaves out lines. Its limits are shared by all
// loggers that are derived from one.
type handler struct {
	slog.Handler
	limits *limits
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if !h.limits.allow(r, h.Handler) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.limits}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.limits}
}

// limits are the lines of each message in its interval.
type limits struct {
	few      int
	interval time.Duration

	mu        sync.Mutex
	byMessage map[string]*limit
}

type limit struct {
	begun             time.Time
	written, heldBack int
}

// allow reports whether a line may be written. The first line that is held back
// in an interval has its end written to the same handler.
func (l *limits) allow(r slog.Record, to slog.Handler) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	at := l.byMessage[r.Message]
	if at == nil {
		if len(l.byMessage) == maxMessages {
			l.forget()
		}
		at = &limit{begun: now}
		l.byMessage[r.Message] = at
	}
	if now.Sub(at.begun) >= l.interval {
		at.begun, at.written = now, 0
	}
	if at.written < l.few {
		at.written++
		return true
	}
	if at.heldBack++; at.heldBack == 1 {
		time.AfterFunc(at.begun.Add(l.interval).Sub(now), func() { l.end(at, r, to) })
	}
	return false
}

// forget drops the messages of which no line is held back.
func (l *limits) forget() {
	for message, at := range l.byMessage {
		if at.heldBack == 0 {
			delete(l.byMessage, message)
		}
	}
	if len(l.byMessage) == maxMessages {
		clear(l.byMessage)
	}
}

// end writes how many lines of an interval were held back.
func (l *limits) end(at *limit, of slog.Record, to slog.Handler) {
	l.mu.Lock()
	lines := at.heldBack
	at.heldBack = 0
	l.mu.Unlock()
	r := slog.NewRecord(time.Now(), of.Level, "more lines were held back", 0)
	r.Add("of", of.Message, "lines", lines)
	// Nobody is left to be told that a log cannot be written.
	_ = to.Handle(context.Background(), r)
}
