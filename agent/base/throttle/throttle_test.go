package throttle

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// newLog returns a log that writes no times to a text.
func newLog(text *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// TestLog checks that in each interval the first lines of a message are written,
// then how many were held back, and that no message holds back another.
func TestLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := Log(newLog(&text).With("tenant", "acme"), 2, time.Minute)
		for i := range 5 {
			log.Warn("flood", "host", i)
			log.With("part", "x").Error("other")
		}
		time.Sleep(59 * time.Second)
		log.Warn("flood")
		time.Sleep(time.Second)
		synctest.Wait()
		log.Warn("flood", "host", 6)
		time.Sleep(time.Hour)
		synctest.Wait()
		log.Warn("flood", "host", 7)
		lines := []string{
			`level=WARN msg=flood tenant=acme host=0`, `level=ERROR msg=other tenant=acme part=x`,
			`level=WARN msg=flood tenant=acme host=1`, `level=ERROR msg=other tenant=acme part=x`,
			`level=WARN msg="more lines were held back" tenant=acme of=flood lines=4`,
			`level=ERROR msg="more lines were held back" tenant=acme part=x of=other lines=3`,
			`level=WARN msg=flood tenant=acme host=6`, `level=WARN msg=flood tenant=acme host=7`,
		}
		got := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(got) > 6 && strings.Contains(got[4], "of=other") {
			got[4], got[5] = got[5], got[4] // They end at the same time.
		}
		if strings.Join(got, "\n") != strings.Join(lines, "\n") {
			t.Errorf("the log has\n%s\nwant\n%s", text.String(), strings.Join(lines, "\n"))
		}
	})
}

// TestManyMessages checks that a logger does not remember messages without end,
// and holds none back that it does not remember.
func TestManyMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := Log(newLog(&text), 1, time.Minute)
		h, ok := log.Handler().(*handler)
		if !ok {
			t.Fatalf("the handler is a %T", log.Handler())
		}
		for i := range 10 * maxMessages {
			log.Warn(fmt.Sprint("message ", i))
			if len(h.limits.byMessage) > maxMessages {
				t.Fatalf("it remembers %d messages", len(h.limits.byMessage))
			}
		}
		if lines := strings.Count(text.String(), "\n"); lines != 10*maxMessages {
			t.Errorf("it writes %d lines", lines)
		}
		for i := range 2 * maxMessages {
			for range 2 {
				log.Warn(fmt.Sprint("twice ", i))
			}
		}
		if len(h.limits.byMessage) > maxMessages {
			t.Errorf("it remembers %d messages", len(h.limits.byMessage))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if held := strings.Count(text.String(), "held back"); held != 2*maxMessages {
			t.Errorf("it tells %d times of lines that were held back", held)
		}
	})
}
