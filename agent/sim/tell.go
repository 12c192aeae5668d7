package sim

import (
	"context"
	"log/slog"
)

// logger has what a process says in the story.
func (w *World) logger(name string) *slog.Logger { return slog.New(teller{w, name}) }

// teller puts log lines into the story.
type teller struct {
	w    *World
	name string
}

func (t teller) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (t teller) Handle(_ context.Context, r slog.Record) error {
	t.w.note("%s says: %v", t.name, said(r.Clone()))
	return nil
}

func (t teller) WithAttrs([]slog.Attr) slog.Handler { return t }
func (t teller) WithGroup(string) slog.Handler      { return t }

// said is a log line as a story shows it.
type said slog.Record

func (s said) String() string {
	r := slog.Record(s)
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "tenant" && a.Key != "host" {
			text += " " + a.String()
		}
		return true
	})
	return text
}
