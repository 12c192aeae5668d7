package throttle

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestFailing checks what is told of something that fails each second for half an
// hour, is well, and fails again.
func TestFailing(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	log := newLog(&text)
	begun := time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)
	var f Failing
	try := func(after time.Duration, err error) {
		f.Note(log, begun.Add(after), err, "it fails", "it is well again", "tenant", "acme")
	}
	full := errors.New("full")
	for after := -time.Hour; after < 0; after += time.Minute {
		try(after, nil)
	}
	for after := range 30 * 60 {
		try(time.Duration(after)*time.Second, full)
	}
	try(30*time.Minute, nil)
	try(31*time.Minute, nil)
	try(32*time.Minute, full)
	try(-time.Hour, full)
	first := `level=WARN msg="it fails" tenant=acme since=2026-11-22T01:00:00Z error=full` + "\n"
	second := strings.Replace(first, "01:00", "01:32", 1)
	want := first + first + first + `level=WARN msg="it is well again" tenant=acme` + "\n" + second + second
	if text.String() != want {
		t.Errorf("it is told\n%s and not\n%s", text.String(), want)
	}
}
