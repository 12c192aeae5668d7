package controller

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// nightly is configured with a window from 02:00 to 03:00 each night.
func nightly(hosts ...string) *memory {
	m := newMemory(hosts...)
	m.configuredAt = time.Now()
	m.config = &v1.OSUpgrade{
		WorkerApplications: []v1.WorkerApplication{{Name: "app"}},
		MaintenanceWindows: []v1.MaintenanceWindow{{
			DaysOfWeek: "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday",
			StartTime:  "02:00", Timezone: "UTC", Duration: "1h",
		}},
	}
	return m
}

// TestNotMissed checks that a window which had its run is not taken for missed
// after a run outside of all windows, by a controller that starts then.
func TestNotMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := nightly("h01")
		c, _ := m.control(t)
		m.beat("h01")
		m.pass(2*time.Hour+time.Minute, "h01")
		m.finish(t, c)
		m.pass(2*time.Hour, "h01")
		if _, err := c.Start(t.Context(), "test", start); err != nil {
			t.Fatal(err)
		}
		m.finish(t, c)
		m.restart(t)
		m.pass(time.Hour, "h01")
		if missed := m.events(`"missed"`); len(missed) > 0 {
			t.Errorf("the log has %q", missed)
		}
	})
}

// TestMissedThoughEdited checks that a window whose run could not be opened is
// recorded as missed, also when a calendar was written while it was open (seed
// 2012423), or after it and before the log could be written to again (seed
// 2027900): the schedule of then had the window.
func TestMissedThoughEdited(t *testing.T) {
	t.Parallel()
	for when, editAfter := range map[string]time.Duration{"while it is open": 10 * time.Minute, "after it": 90 * time.Minute} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := nightly("h01")
				m.control(t)
				m.beat("h01")
				m.pass(2*time.Hour-time.Minute, "h01")
				m.fails(errors.New("no space left on device"), false)
				m.pass(editAfter, "h01")
				far := v1.Calendar{Kind: "freeze", Events: []v1.Event{{Start: "2000-02-01T00:00", Duration: "1h", Timezone: "UTC"}}}
				m.declare(store.Seen{Object: calendarNamed("far"), Calendar: &far})
				m.pass(2*time.Hour-editAfter, "h01")
				m.fails(nil, false)
				m.pass(time.Minute, "h01")
				if missed := m.events(`"missed"`); len(missed) != 1 || !strings.Contains(missed[0], `"window":"2000-01-01T02:00:00Z"`) {
					t.Errorf("missed are %q", missed)
				}
			})
		})
	}
}

// TestStoryEndsWithTheRun checks that a window which is missed later is no part
// of the story of the run before it.
func TestStoryEndsWithTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := nightly("h01", "h02")
		c, _ := m.control(t)
		m.beat("h01", "h02")
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		m.finish(t, c)
		m.pass(49 * time.Hour) // All are silent: two windows are missed.
		if missed := m.events(`"missed"`); len(missed) != 2 {
			t.Fatalf("the log has %q", missed)
		}
		view, err := c.Find(t.Context(), r.ID)
		if last := view.Events[len(view.Events)-1]; err != nil || last.Event != "finished" || m.runPuts != 1 {
			t.Errorf("after %d writes to the history the story ends with %+v, %v", m.runPuts, last, err)
		}
	})
}

// TestMissedByAWrongClock checks that windows are written down as missed again
// once a clock that was years ahead is corrected, each once.
func TestMissedByAWrongClock(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	m := nightly()
	o := m.options(t)
	o.Now = func() time.Time { return noon }
	s := stateOf(o)
	s.intent.set(store.Seen{Object: theConfig, Config: m.config, At: noon.AddDate(0, -1, 0)})
	s.heard("h01", message.Alive{Application: "app"}, noon)
	s.setBack(noon.Add(-50 * time.Hour)) // It was corrected then.
	ahead := noon.AddDate(4, 0, 0)
	note := func(seq uint64, e message.Event) {
		if err := s.ledger.Fold(message.Record{Seq: seq, Kind: message.EventRecord, Time: noon, Body: message.EncodeEvent(e)}.Decode()); err != nil {
			t.Fatal(err)
		}
		s.touched()
	}
	note(1, message.Missed{Window: ahead, WindowEnd: ahead, Reason: "by the wrong clock"})
	for n, want := range []string{"2026-11-20T02:00:00Z", "2026-11-21T02:00:00Z"} {
		e, some := s.missed(s.standard(), noon)
		if !some || e.Window.Format(time.RFC3339) != want {
			t.Fatalf("missed is %+v, %t, and not the window of %s", e, some, want)
		}
		note(uint64(n+2), e)
	}
	if e, some := s.missed(s.standard(), noon); some {
		t.Errorf("missed is %+v once more", e)
	}
}

// TestOwedByAWrongClock checks that a window which an edit left owed while the clock was years ahead
// is not written down as missed once the clock is right: no record could say so for good, so that it
// was written again and again.
func TestOwedByAWrongClock(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ahead := noon.AddDate(4, 0, 0)
	shows := ahead
	m := nightly()
	o := m.options(t)
	o.Now = func() time.Time { return shows }
	s := stateOf(o)
	s.heard("h01", message.Alive{Application: "app"}, noon)
	s.intent.complete = true
	s.intent.set(store.Seen{Object: theConfig, Config: m.config, At: ahead.AddDate(0, -1, 0)})
	s.setIntent(store.Seen{Object: theConfig, Config: m.config, At: ahead})
	if owed := s.owed(s.standard(), ahead); len(owed) == 0 {
		t.Fatal("the edit has left no window owed")
	}
	shows = noon
	s.setBack(noon)
	if e, some := s.missed(s.standard(), noon); some {
		t.Errorf("missed is %+v, which has yet to open", e)
	}
}
