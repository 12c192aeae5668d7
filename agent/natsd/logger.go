package natsd

import (
	"fmt"
	"log/slog"
)

// logger hands the server's own log on. The server calls Fatalf and goes on,
// so the text is kept for whoever waits for it to become ready.
type logger struct {
	log   *slog.Logger
	fatal chan string
}

func newLogger(log *slog.Logger) *logger {
	return &logger{log: log.With("part", "nats"), fatal: make(chan string, 1)}
}

// Noticef is at debug level: the server notes its start in forty lines.
func (l *logger) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Warnf(format string, v ...any)   { l.log.Warn(fmt.Sprintf(format, v...)) }
func (l *logger) Errorf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Tracef(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }

func (l *logger) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.log.Error(text)
	select {
	case l.fatal <- text:
	default:
	}
}
