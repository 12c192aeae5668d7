package natsd

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
)

// fewLines is how many lines of a kind that whoever connects can cause are
// written in a minute.
const fewLines = 5

// maxForeign is how much is logged of a text that others chose, in bytes.
const maxForeign = 400

// logger hands the server's own log on. The server calls Fatalf and goes on,
// so the text is kept for whoever waits for it to become ready.
type logger struct {
	log   *slog.Logger
	fatal chan string
	// clients is for the lines that connections cause, own for those of the server
	// itself: on a full disk it says the same for each record.
	clients, own *slog.Logger
}

func newLogger(log *slog.Logger) *logger {
	log = log.With("part", "nats")
	return &logger{
		log: log, fatal: make(chan string, 1),
		clients: throttle.Log(log, fewLines, time.Minute), own: throttle.Log(log, 1, throttle.Again),
	}
}

// Noticef is at debug level: the server notes its start in forty lines.
func (l *logger) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Warnf(format string, v ...any)   { l.write((*slog.Logger).Warn, format, v) }
func (l *logger) Errorf(format string, v ...any)  { l.write((*slog.Logger).Error, format, v) }
func (l *logger) Debugf(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Tracef(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }

// write writes a line. A line that a connection has caused begins with the
// connection's address and number.
func (l *logger) write(at func(*slog.Logger, string, ...any), format string, v []any) {
	text := fmt.Sprintf(format, v...)
	if address, _, _ := strings.Cut(text, " - "); strings.HasPrefix(text[len(address):], " - cid:") {
		at(l.clients, "error of a connection", "text", short(text))
		return
	}
	at(l.own, text)
}

func (l *logger) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.log.Error(text)
	select {
	case l.fatal <- text:
	default:
	}
}

// short cuts a text that others chose.
func short(foreign string) string { return text.Cut(foreign, maxForeign, "...") }
