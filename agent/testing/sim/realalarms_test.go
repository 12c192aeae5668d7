package sim_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

// alarms is a log that keeps alarms and other errors: in a fleet to which
// nothing happens but restarts, there are none.
type alarms struct {
	mu   sync.Mutex
	told []string
}

func (a *alarms) all() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.told)
}

// Enabled implements slog.Handler.
func (a *alarms) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

// Handle implements slog.Handler.
func (a *alarms) Handle(_ context.Context, r slog.Record) error {
	text := now() + " " + r.Message
	r.Attrs(func(attr slog.Attr) bool {
		text += " " + attr.String()
		return true
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told = append(a.told, text)
	return nil
}

// WithAttrs implements slog.Handler.
func (a *alarms) WithAttrs([]slog.Attr) slog.Handler { return a }

// WithGroup implements slog.Handler.
func (a *alarms) WithGroup(string) slog.Handler { return a }
