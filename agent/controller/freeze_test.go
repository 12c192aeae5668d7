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
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// frozenAt checks that the run ends at a time of the bubble's first day because
// of a freeze, and that no host beyond the first was sent its upgrade.
func (m *memory) frozenAt(t *testing.T, c *Controller, r v1.Run, clock string) {
	t.Helper()
	m.reply("h01", r.ID, message.Upgrade)
	view, err := c.Find(t.Context(), r.ID)
	if err != nil || view.Result != "timed-out" || !strings.Contains(view.Reason, "a freeze began at 2000-01-01T"+clock+":00Z: quarter (stocktaking)") {
		t.Errorf("the run ended as %q: %s, %v; the log ends with %s", view.Result, view.Reason, err, m.last())
	}
	if n := len(m.upgrades()); n != 1 {
		t.Errorf("%d hosts were sent upgrade, though only h01 had its turn before the freeze", n)
	}
}

// TestFreezeAfterTheClockWasSetBack checks invariant 3: a run that was opened
// by a clock two hours ahead ends with the freeze that begins, or is on, by the
// clock as it was corrected, whether or not anything was written in between.
func TestFreezeAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	for name, begins := range map[string]string{"it begins later": "00:30", "it is on": "00:05"} {
		for more, restart := range map[string]bool{"": false, ", after a restart": true} {
			t.Run(name+more, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					m := newMemory("h01", "h02")
					m.calendars["quarter"] = freezeFrom(begins, "1h")
					m.setClock(2 * time.Hour)
					c, r := m.begun(t, "h01", "h02")
					m.pass(10*time.Minute, "h01", "h02")
					m.setClock(0)
					if restart {
						c = m.restart(t)
						m.beat("h01", "h02")
					}
					m.pass(30*time.Minute, "h01", "h02")
					m.frozenAt(t, c, r, begins)
				})
			})
		}
	}
}

// TestFreezeAfterTheClockWasSetBackInASoak checks the same where nothing but
// the clock has the next host go: no record tells of the correction before.
func TestFreezeAfterTheClockWasSetBackInASoak(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.calendars["quarter"] = freezeFrom("00:20", "1h")
		m.rollout = &v1.Rollout{Stages: []v1.Stage{
			{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}, Soak: "30m"}, {Name: "rest"},
		}}
		m.setClock(2 * time.Hour)
		c, r := m.begun(t, "h01", "h02")
		m.reply("h01", r.ID, message.Upgrade)
		m.pass(10*time.Minute, "h01", "h02")
		m.setClock(0)
		m.pass(30*time.Minute, "h01", "h02")
		if view, err := c.Find(t.Context(), r.ID); err != nil || view.Result != "timed-out" || len(m.upgrades()) != 1 {
			t.Errorf("the run is %q, %v; the log ends with %s", view.Result, err, m.last())
		}
	})
}

// TestFreezeBeforeTheRunByTheLog checks that a controller whose clock is three
// hours behind does not end a run with a freeze that was over when the run was
// opened, by the clock of the log, and does not write so again and again.
func TestFreezeBeforeTheRunByTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.calendars["quarter"] = freezeFrom("00:30", "1h")
		time.Sleep(2 * time.Hour)
		c, r := m.begun(t, "h01", "h02")
		m.folder = "" // The other has its guard elsewhere.
		late := m.options(t)
		late.Now = func() time.Time { return time.Now().Add(-3 * time.Hour) }
		m.run(t, late)
		m.beat("h01", "h02")
		m.pass(30*time.Minute, "h01", "h02")
		view, err := c.Find(t.Context(), r.ID)
		if err != nil || view.Result != "" || !view.NotAfter.Equal(r.NotAfter) {
			t.Errorf("the run that is to end at %s is %q and ends at %s, %v", r.NotAfter, view.Result, view.NotAfter, err)
		}
		if n := len(m.events(`"frozen"`)); n > 1 {
			t.Errorf("a freeze that is over is written down %d times", n)
		}
	})
}

// TestFreezeWithoutConfiguration checks that a freeze ends the run under way
// though its configuration was deleted, or cannot be read any more.
func TestFreezeWithoutConfiguration(t *testing.T) {
	t.Parallel()
	for name, seen := range map[string]store.Seen{
		"deleted": {Object: theConfig}, "damaged": {Object: theConfig, Err: errors.New("it is damaged")},
		"wrong": {Object: theConfig, Config: &wrong},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01", "h02")
				c, r := m.begun(t, "h01", "h02")
				m.declare(seen)
				freeze := freezeFrom("00:10", "12h")
				m.declare(store.Seen{Object: calendarNamed("quarter"), Calendar: &freeze})
				m.pass(30*time.Minute, "h01", "h02")
				m.frozenAt(t, c, r, "00:10")
			})
		})
	}
}

// wrong has a window that cannot be read.
var wrong = v1.OSUpgrade{
	WorkerApplications: always.WorkerApplications,
	MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Caturday", StartTime: "00:00", Timezone: "UTC", Duration: "1h"}},
}

// TestFreezeBesideWhatCannotBeRead checks that a calendar which cannot be read
// does not hide a freeze that can.
func TestFreezeBesideWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, r := m.begun(t, "h01", "h02")
		m.declare(damaged)
		freeze := freezeFrom("00:10", "12h")
		m.declare(store.Seen{Object: calendarNamed("quarter"), Calendar: &freeze})
		if s, err := c.State(t.Context()); err != nil || s.Frozen != nil {
			t.Errorf("before the freeze the state is %+v, %v", s.Frozen, err)
		}
		m.pass(30*time.Minute, "h01", "h02")
		if s, err := c.State(t.Context()); err != nil || s.Frozen == nil {
			t.Errorf("in the freeze the state does not tell of it, %v", err)
		}
		m.frozenAt(t, c, r, "00:10")
	})
}

var damaged = store.Seen{Object: calendarNamed("other"), Err: errors.New("it is damaged")}

// TestNoStartWhileUnreadable checks that a start is refused while the
// configuration or a calendar cannot be read, and says which and what to do.
func TestNoStartWhileUnreadable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		breaks, mends func(*memory)
		says          string
	}{
		"a calendar": {
			func(m *memory) { m.declare(damaged) },
			func(m *memory) { m.declare(store.Seen{Object: calendarNamed("other")}) },
			"calendar other cannot be read: the stored calendar other of tenant acme is damaged: unexpected end of JSON input; write it anew or delete it",
		},
		"the configuration": {
			func(m *memory) {
				m.declare(store.Seen{Object: theConfig, Err: errors.New("it is damaged")})
			},
			func(m *memory) { m.declare(store.Seen{Object: theConfig, Config: &always}) },
			"the configuration cannot be read: the stored os-upgrade configuration of tenant acme is damaged: unexpected end of JSON input; write it anew",
		},
		"a window": {
			func(m *memory) { m.declare(store.Seen{Object: theConfig, Config: &wrong}) },
			func(m *memory) { m.declare(store.Seen{Object: theConfig, Config: &always}) },
			"the configuration cannot be read: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01")
				controller, _ := m.control(t)
				m.pass(time.Minute, "h01")
				c.breaks(m)
				var refused *run.Refused
				if _, err := controller.Start(t.Context(), "test", start); !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), c.says) {
					t.Errorf("a start is answered with %v", err)
				}
				if s, err := controller.State(t.Context()); err != nil || s.WaitingFor == nil || !strings.Contains(s.WaitingFor.Detail, c.says) {
					t.Errorf("the state says %+v, %v", s.WaitingFor, err)
				}
				c.mends(m)
				if s, err := controller.State(t.Context()); err != nil || s.WaitingFor != nil {
					t.Errorf("when it is mended the state says %+v, %v", s.WaitingFor, err)
				}
				if m.size() > 0 { // The mended one has a window that is open.
					return
				}
				if _, err := controller.Start(t.Context(), "test", start); err != nil {
					t.Errorf("when it is mended a start is answered with %v", err)
				}
			})
		})
	}
}

// TestUnreadableHoldsTheRun checks that the run under way is paused while the
// configuration or a calendar cannot be read, as for the rollout, that nobody
// resumes it by hand, and that it goes on by itself.
func TestUnreadableHoldsTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, r := m.begun(t, "h01", "h02")
		m.declare(damaged)
		want := `{"event":"paused","by":"the agent itself","why":"calendar other cannot be read: the stored calendar other of tenant acme is damaged: unexpected end of JSON input; write it anew or delete it"}`
		if m.last() != want {
			t.Fatalf("the log ends with %s, not %s", m.last(), want)
		}
		m.reply("h01", r.ID, message.Upgrade)
		if len(m.upgrades()) != 1 {
			t.Error("h02 is upgraded though a calendar cannot be read")
		}
		if w := m.waiting(t, c, r.ID); w.What != "resume" || w.Detail != "somebody to repair an unreadable object: calendar other cannot be read: the stored calendar other of tenant acme is damaged: unexpected end of JSON input; write it anew or delete it" {
			t.Errorf("the run waits for %+v", w)
		}
		if _, err := c.Ask(t.Context(), "ann", run.Resume, why); err == nil || !strings.Contains(err.Error(), "calendar other cannot be read") {
			t.Errorf("resume is answered with %v", err)
		}
		m.declare(store.Seen{Object: theConfig, Err: errors.New("it is damaged")})
		if !strings.Contains(m.last(), "the configuration cannot be read: the stored os-upgrade configuration of tenant acme is damaged: unexpected end of JSON input; write it anew, and calendar other cannot be read") {
			t.Errorf("the log ends with %s", m.last())
		}
		m.declare(store.Seen{Object: calendarNamed("other")})
		m.declare(store.Seen{Object: theConfig, Config: m.config})
		if want := `{"action":"upgrade","host":"h02"}`; m.last() != want {
			t.Errorf("the log ends with %s, not %s", m.last(), want)
		}
	})
}

// TestUnreadableAndRolloutHoldTheRun checks that the run goes on only when
// neither the rollout nor what cannot be read holds it.
func TestUnreadableAndRolloutHoldTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		_, r := m.begun(t, "h01", "h02")
		m.declare(held)
		m.declare(damaged)
		if !strings.Contains(m.last(), `{"event":"paused","by":"the agent itself"`) {
			t.Errorf("the log ends with %s", m.last())
		}
		m.reply("h01", r.ID, message.Upgrade)
		m.declare(let)
		if len(m.upgrades()) != 1 {
			t.Errorf("when the rollout lets the run go, the log ends with %s", m.last())
		}
		m.declare(held)
		m.declare(store.Seen{Object: calendarNamed("other")})
		if want := `{"event":"paused","by":"rollout"}`; m.last() != want || len(m.upgrades()) != 1 {
			t.Errorf("when the calendar can be read, the log ends with %s, not %s", m.last(), want)
		}
		m.declare(let)
		if want := `{"action":"upgrade","host":"h02"}`; m.last() != want {
			t.Errorf("the log ends with %s, not %s", m.last(), want)
		}
	})
}
