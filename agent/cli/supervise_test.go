package cli

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestHungWorker checks that the watchdog is fed for as long as the loop keeps what it
// promised, and not by a timer that runs by itself.
func TestHungWorker(t *testing.T) {
	address := filepath.Join(t.TempDir(), "notify")
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = systemd.Close() }()
	told := func(within time.Duration) string {
		text := make([]byte, 100)
		if err := systemd.SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		n, _ := systemd.Read(text) // Nothing is told: "".
		return string(text[:n])
	}
	t.Setenv("NOTIFY_SOCKET", address)
	t.Setenv("WATCHDOG_USEC", "60000")
	log := &lockedText{}
	s, err := newSupervision(slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	loop := s.worker(ctx)
	if got := told(100 * time.Millisecond); got != "" {
		t.Errorf("before the loop goes round systemd is told %q", got)
	}
	loop.Alive(time.Now().Add(time.Hour))
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		if got := told(time.Minute); got != want {
			t.Errorf("systemd is told %q, not %q", got, want)
		}
	}
	loop.Alive(time.Now().Add(-time.Second)) // It was to go round by then.
	for told(200*time.Millisecond) != "" {
		// What was under way.
	}
	if got := told(500 * time.Millisecond); got != "" || !strings.Contains(log.String(), "the loop of the worker was to go round until") {
		t.Errorf("of a loop that hangs systemd is told %q, and the log has\n%s", got, log)
	}
	loop.Alive(time.Now().Add(time.Hour))
	if got := told(time.Minute); got != "WATCHDOG=1" {
		t.Errorf("of a loop that goes on systemd is told %q", got)
	}
	if (&supervision{}).worker(ctx) != nil {
		t.Error("without systemd the loop is watched over")
	}
}
