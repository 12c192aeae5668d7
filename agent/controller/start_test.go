package controller

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

var start = v1.Start{OverrideWindow: true, Reason: "a test"}

// TestBounds checks when a run that is started by hand ends, to which window
// it belongs, and what is refused.
func TestBounds(t *testing.T) {
	t.Parallel()
	friday := time.Date(2026, 11, 20, 1, 0, 0, 0, time.UTC)
	weekly := &v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{
		{DaysOfWeek: "Friday", StartTime: "01:00", Timezone: "UTC", Duration: "4h"},
	}}
	in, before := friday.Add(time.Hour), friday.Add(-time.Hour)
	for name, c := range map[string]struct {
		config  *v1.OSUpgrade
		now     time.Time
		request v1.Start
		window  bool
		end     time.Time
		refused string
	}{
		"in a window":                    {weekly, in, v1.Start{}, true, friday.Add(4 * time.Hour), ""},
		"in a window that is overridden": {weekly, in, v1.Start{OverrideWindow: true}, true, friday.Add(4 * time.Hour), ""},
		"in a window that is overridden, with a duration": {
			weekly, in, v1.Start{OverrideWindow: true, Duration: "30m"}, true, in.Add(30 * time.Minute), "",
		},
		"before a window":                    {weekly, before, v1.Start{}, false, time.Time{}, "no maintenance window is open; the next one opens at 2026-11-20T01:00:00Z; to start now: osupgrade-agent start --override-window --reason …"},
		"before a window that is overridden": {weekly, before, v1.Start{OverrideWindow: true}, false, before.Add(4 * time.Hour), ""},
		"override with a duration":           {weekly, before, v1.Start{OverrideWindow: true, Duration: "30m"}, false, before.Add(30 * time.Minute), ""},
		"without windows":                    {nil, in, v1.Start{}, false, time.Time{}, "no maintenance window is configured; to start now: osupgrade-agent start --override-window --reason …"},
		"of some hosts, before a window":     {weekly, before, v1.Start{Hosts: []string{"h01", "h02"}}, false, time.Time{}, "to start now: osupgrade-agent start --host h01 --host h02 --override-window --reason …"},
		"of many hosts, before a window":     {weekly, before, v1.Start{Hosts: []string{"h01", "h02", "h03", "h04"}}, false, time.Time{}, "start --host h01 --host h02 --host h03 --host … --override-window"},
		"retry, before a window":             {weekly, before, v1.Start{RetryOf: 41}, false, time.Time{}, "to start now: osupgrade-agent retry 41 --override-window --reason …"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stateOf(newMemory().options(t))
			s.intent.set(store.Seen{Object: theConfig, Config: c.config})
			e, err := s.bounds(s.standard(), c.now, c.request)
			var refused *run.Refused
			switch {
			case c.refused != "":
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("refused with %v", err)
				}
			case err != nil || !e.NotAfter.Equal(c.end) || e.Window.IsZero() == c.window || c.window && !e.Window.Equal(friday):
				t.Errorf("the event is %+v, %v", e, err)
			}
		})
	}
}

// TestOneRunPerWindow checks that a window gets one run and the next window
// the next, and that a run started by hand in a window is that window's.
func TestOneRunPerWindow(t *testing.T) {
	t.Parallel()
	for name, byHand := range map[string]bool{"by itself": false, "by hand": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				m.config = &always
				c, _ := m.control(t)
				m.beat("h01")
				if byHand {
					if _, err := c.Start(t.Context(), "test", start); err != nil {
						t.Fatal(err)
					}
				}
				for day := range 3 {
					time.Sleep(quiet)
					m.beat("h01")
					m.finish(t, c)
					if runs, err := c.Runs(t.Context(), v1.RunFilter{}); err != nil || len(runs) != day+1 {
						t.Fatalf("on day %d there were %d runs, %v", day+1, len(runs), err)
					}
					for today := time.Now().YearDay(); time.Now().YearDay() == today; {
						time.Sleep(message.Heartbeat)
						m.beat("h01")
					}
				}
			})
		})
	}
}

// finish answers for h01 until the run under way has ended.
func (m *memory) finish(t *testing.T, c *Controller) {
	t.Helper()
	id, err := c.Current(t.Context())
	if err != nil || id == 0 {
		t.Fatalf("there is no run in progress: %d, %v", id, err)
	}
	m.reply("h01", id, message.Prepare)
	m.reply("h01", id, message.Upgrade)
}

// TestRunOfAWrongClock checks that a run which was opened while the clock was
// years ahead does not keep the windows of today from theirs, and that logs
// of runs by hand count, which name no window.
func TestRunOfAWrongClock(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	midnight, years := noon.Truncate(24*time.Hour), noon.AddDate(4, 0, 0)
	for name, c := range map[string]struct {
		window time.Time
		opened time.Time
		wants  bool
	}{
		"the run of this window":             {midnight, noon.Add(-time.Hour), false},
		"its run, stamped years ahead":       {midnight, years, false},
		"a run of a window in years":         {years, years, true},
		"a run by hand":                      {time.Time{}, noon.Add(-time.Hour), false},
		"a run by hand, of the day before":   {time.Time{}, noon.Add(-24 * time.Hour), true},
		"a run by hand, stamped years ahead": {time.Time{}, years, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMemory()
			o := m.options(t)
			o.Now = func() time.Time { return noon }
			s := stateOf(o)
			s.started = noon.Add(-time.Hour)
			s.intent.set(store.Seen{Object: theConfig, Config: &always})
			s.heard("h01", message.Alive{Application: "app"}, noon)
			s.hosts.joined = s.started
			end := c.opened.Add(time.Hour)
			for i, e := range []message.Event{
				message.Opened{Members: []string{"h01"}, Rollout: rollout.Default(1), Window: c.window, WindowEnd: end, NotAfter: end},
				message.Aborted{By: "ann", Why: "a test"},
				message.Finished{Result: "aborted"},
			} {
				r := message.Record{Seq: uint64(i + 1), Kind: message.EventRecord, Time: c.opened, Body: message.EncodeEvent(e)}
				s.fold(t.Context(), r)
				m.log.Damage(func(all []message.Record) []message.Record { return append(all, r) })
			}
			s.decide(t.Context())
			opened := m.size() > 3
			if opened != c.wants {
				t.Errorf("a run is opened: %v", opened)
			}
			if want := `"window":"2026-11-21T00:00:00Z"`; opened && !strings.Contains(m.last(), want) {
				t.Errorf("the event %s does not name its window", m.last())
			}
		})
	}
}

// TestStartIsRepeated: a start with the id of the newest run returns that run, under way or
// ended, also after a restart; any other start is one of its own.
func TestStartIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		c, _ := m.control(t)
		m.beat("h01")
		named := start
		named.RequestID = "tf-1"
		first, err := c.Start(t.Context(), "test", named)
		if err != nil || first.RequestID != "tf-1" {
			t.Fatalf("got %+v, %v", first, err)
		}
		same := func(when string) {
			t.Helper()
			again, err := c.Start(t.Context(), "test", named)
			if err != nil || again.ID != first.ID {
				t.Errorf("%s: got run %d, %v, want run %d", when, again.ID, err, first.ID)
			}
		}
		same("in progress")
		c = m.restart(t)
		m.beat("h01")
		same("after a restart")
		another := named
		another.RequestID = "tf-2"
		for name, request := range map[string]v1.Start{"another id": another, "no id": start} {
			if _, err := c.Start(t.Context(), "test", request); err == nil {
				t.Errorf("%s: a second run was started", name)
			}
		}
		m.reply("h01", first.ID, message.Prepare)
		m.answer("h01", first, message.Upgrade, "no space left")
		same("ended")
		m.beat("h01")
		if second, err := c.Start(t.Context(), "test", another); err != nil || second.ID == first.ID {
			t.Errorf("got run %d, %v, want another run", second.ID, err)
		}
	})
}
