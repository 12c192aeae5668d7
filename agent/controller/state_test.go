package controller

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestGuardThatCannotBeKept checks that a full disk is no alarm: the guard is
// tried again, at longer and longer intervals.
func TestGuardThatCannotBeKept(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "missing")
	g, err := guard.OpenFile(filepath.Join(folder, "guard.json"))
	if err != nil {
		t.Fatal(err)
	}
	o := newMemory().options(t)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	o.Guard, o.Now = g.Guard("acme"), func() time.Time { return now }
	s := stateOf(o)
	s.fold(t.Context(), message.Record{Seq: 1, Kind: message.EventRecord, Body: []byte("{}")})
	for _, want := range []time.Duration{time.Second, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second} {
		if wait := s.guard.keepAt.Sub(now); wait != want {
			t.Errorf("the guard is kept after %s, not %s", wait, want)
		}
		now = s.guard.keepAt
		if next := s.decide(t.Context()); !next.Equal(s.guard.keepAt) {
			t.Errorf("the loop looks again at %s, not at %s", next, s.guard.keepAt)
		}
	}
	if err := s.ready(); err != nil {
		t.Errorf("the controller stands still: %v", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	now = s.guard.keepAt
	s.decide(t.Context())
	if _, err := os.Stat(filepath.Join(folder, "guard.json")); err != nil || !s.guard.keepAt.IsZero() || s.guard.pause != 0 {
		t.Errorf("the guard is not kept: %v", err)
	}
}

// TestAlarmIsShown checks that whoever looks sees that a run does not go on,
// why, and what to do.
func TestAlarmIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c, r := blocked(t)
		m.mu.Lock()
		// Its sequence was lost with a part of the log.
		m.log.Damage(func(all []message.Record) []message.Record { return append(all, message.Record{}) })
		m.add(message.Record{Kind: message.EventRecord})
		m.mu.Unlock()
		synctest.Wait()
		shown, err := c.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		runs, err := c.Runs(t.Context(), v1.RunFilter{})
		if err != nil || len(runs) != 1 {
			t.Fatalf("the runs are %+v, %v", runs, err)
		}
		ready := c.Ready(t.Context())
		if !errors.Is(ready, run.ErrNotReady) {
			t.Fatalf("the controller says that it is ready: %v", ready)
		}
		_, started := c.Start(t.Context(), "test", start)
		for where, text := range map[string]string{"newest": shown.Run.Reason, "runs": runs[0].Reason, "ready": ready.Error(), "start": started.Error()} {
			for _, part := range []string{"the log is damaged", "put back the newest backup", "osupgrade-agent recover"} {
				if !strings.Contains(text, part) || strings.Contains(text, "\n") {
					t.Errorf("%s: %q does not say %q in one line", where, text, part)
				}
			}
		}
		if state, err := c.State(t.Context()); err != nil || state.Status != "waiting" {
			t.Errorf("the status is %q, %v", state.Status, err)
		}
		m.beat("h03")
		if got := m.last(); strings.Contains(got, "recovered") || shown.Run.ID != r.ID {
			t.Errorf("the controller goes on with %s", got)
		}
	})
}

// TestAlarmWithoutARun checks that a tenant whose log is not to be trusted is
// not shown as idle.
func TestAlarmWithoutARun(t *testing.T) {
	t.Parallel()
	s := stateOf(newMemory().options(t))
	if status := s.status(time.Now()).Status; status != "idle" {
		t.Errorf("the status is %q before the alarm", status)
	}
	s.raise(errors.New("the log is damaged"))
	if status := s.status(time.Now()).Status; status != "waiting" {
		t.Errorf("the status is %q", status)
	}
}
