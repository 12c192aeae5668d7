package natsd

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/trouble"
)

// fewLines is how many lines that whoever connects can cause are written in a
// minute.
const fewLines = 5

// logger hands the server's own log on. The server calls Fatalf and goes on,
// so the text is kept for whoever waits for it to become ready.
type logger struct {
	log   *slog.Logger
	fatal chan string
	// clients are the lines that a connection has caused.
	clients seldom
	// told is when each line of its own was written last.
	mu   sync.Mutex
	told map[string]time.Time
}

// maxTold bounds the lines of which it is known when they were written.
const maxTold = 100

func newLogger(log *slog.Logger) *logger {
	log = log.With("part", "nats")
	return &logger{log: log, fatal: make(chan string, 1), told: map[string]time.Time{}, clients: seldom{few: fewLines, span: time.Minute, rest: func(kept int) {
		log.Warn("connections have caused more lines like those before", "kept-back", kept)
	}}}
}

// Noticef is at debug level: the server notes its start in forty lines.
func (l *logger) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Warnf(format string, v ...any)   { l.write(l.log.Warn, format, v) }
func (l *logger) Errorf(format string, v ...any)  { l.write(l.log.Error, format, v) }
func (l *logger) Debugf(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Tracef(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }

// write writes a line. One that a connection has caused begins with where that
// comes from and its number.
func (l *logger) write(to func(string, ...any), format string, v []any) {
	text := fmt.Sprintf(format, v...)
	if address, _, _ := strings.Cut(text, " - "); strings.HasPrefix(text[len(address):], " - cid:") {
		if !l.clients.let() {
			return
		}
		text = short(text)
	} else if !l.news(text) {
		return
	}
	to(text)
}

// news reports whether a line was not written lately: on a full disk the server
// says the same for each record.
func (l *logger) news(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if last, known := l.told[text]; known && now.Sub(last) < trouble.Again {
		return false
	}
	if len(l.told) == maxTold {
		clear(l.told)
	}
	l.told[text] = now
	return true
}

func (l *logger) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.log.Error(text)
	select {
	case l.fatal <- text:
	default:
	}
}
