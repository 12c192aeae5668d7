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

var (
	held   = store.Seen{Object: theRollout, Rollout: &v1.Rollout{Paused: true}}
	let    = store.Seen{Object: theRollout, Rollout: &v1.Rollout{}}
	broken = store.Seen{Object: theRollout, Err: errors.New("it is damaged")}
)

// lenient goes on whatever fails.
func lenient() *v1.Rollout { return &v1.Rollout{OnFailure: "continue"} }

// TestRolloutHoldsTheRun checks that the run under way is paused while the
// rollout says so or cannot be read, goes on by itself, and ends if somebody
// aborts it.
func TestRolloutHoldsTheRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		holds store.Seen
		event string
	}{
		"paused":     {held, `{"event":"paused","by":"rollout"}`},
		"unreadable": {broken, `{"event":"paused","by":"the agent itself","why":"the rollout cannot be read: the stored rollout of tenant acme is damaged: unexpected end of JSON input; write it anew"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01", "h02")
				controller, r := m.begun(t, "h01", "h02")
				m.declare(c.holds)
				if m.last() != c.event {
					t.Fatalf("the log ends with %s, not %s", m.last(), c.event)
				}
				m.reply("h01", r.ID, message.Upgrade)
				m.declare(c.holds)
				if n := len(m.events(`"event":"paused"`)); n != 1 || len(m.upgrades()) != 1 {
					t.Errorf("there are %d events and %d upgrades", n, len(m.upgrades()))
				}
				m.declare(let)
				if want := `{"action":"upgrade","host":"h02"}`; m.last() != want || len(m.events(`"event":"resumed"`)) != 1 {
					t.Errorf("the log ends with %s, not %s", m.last(), want)
				}
				if _, err := controller.Ask(t.Context(), "ann", run.Abort, why); err != nil {
					t.Fatal(err)
				}
				m.declare(c.holds)
				if n := len(m.events(`"event":"paused"`)); n != 1 {
					t.Errorf("a run that is aborted is paused")
				}
			})
		})
	}
}

// TestRolloutAndSomebodyHoldTheRun checks that a rollout which lets a run go on
// does not let go what somebody holds, and that nobody lets go what it holds.
func TestRolloutAndSomebodyHoldTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, r := m.begun(t, "h01", "h02")
		if _, err := c.Ask(t.Context(), "ann", run.Pause, why); err != nil {
			t.Fatal(err)
		}
		m.declare(held)
		m.declare(let)
		if n := len(m.events("resumed")); n != 0 {
			t.Fatal("the rollout resumes what ann has paused")
		}
		m.declare(held)
		if _, err := c.Ask(t.Context(), "ann", run.Resume, why); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		view, err := c.Find(t.Context(), r.ID)
		if err != nil || view.Paused != "by rollout" {
			t.Errorf("the run is paused %q, %v", view.Paused, err)
		}
		if _, err := c.Ask(t.Context(), "ann", run.Resume, why); err == nil || !strings.Contains(err.Error(), "is paused by the rollout") {
			t.Errorf("resume is answered with %v", err)
		}
	})
}

// TestUnreadableRolloutIsTold checks that a run which is held up because the
// rollout cannot be read says just that, also when the rollout had paused it
// before; and that it is the rollout's again once that can be read.
func TestUnreadableRolloutIsTold(t *testing.T) {
	t.Parallel()
	const damage = "the rollout cannot be read: the stored rollout of tenant acme is damaged: unexpected end of JSON input; write it anew"
	for name, before := range map[string]store.Seen{"of a rollout that let it continue": let, "of one that held it up": held} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01", "h02")
				c, r := m.begun(t, "h01", "h02")
				m.declare(before)
				m.declare(broken)
				if w := m.waiting(t, c, r.ID); w.What != run.ForResume || w.Detail != "somebody to repair an unreadable object: "+damage {
					t.Errorf("it waits for %+v", w)
				}
				if _, err := c.Ask(t.Context(), "ann", run.Resume, why); err == nil || !strings.Contains(err.Error(), "proceeds after the repair: "+damage) {
					t.Errorf("resume is answered with %v", err)
				}
				m.reply("h01", r.ID, message.Upgrade)
				m.declare(held)
				if w := m.waiting(t, c, r.ID); !strings.Contains(w.Detail, `its member "paused" is true`) {
					t.Errorf("once it is mended it waits for %+v", w)
				}
				m.declare(broken)
				if len(m.upgrades()) != 1 {
					t.Errorf("another host is begun: %s", m.last())
				}
			})
		})
	}
}

// TestRolloutIsSeenLate checks that a controller which has just started does
// nothing before it has seen the rollout: it neither lets go what that holds
// nor opens a run without it.
func TestRolloutIsSeenLate(t *testing.T) {
	t.Parallel()
	t.Run("a run is in progress", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := newMemory("h01", "h02")
			m.rollout = held.Rollout
			c, _ := m.control(t)
			m.beat("h01", "h02")
			if _, err := c.Start(t.Context(), "test", start); err != nil {
				t.Fatal(err)
			}
			before := m.size()
			m.rolloutDelay = time.Hour
			m.restart(t)
			m.beat("h01", "h02")
			time.Sleep(2 * gracePeriod)
			synctest.Wait()
			if m.size() != before {
				t.Errorf("the log goes on with %s", m.last())
			}
		})
	})
	t.Run("a window is open", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := newMemory("h01")
			m.config, m.rollout, m.rolloutDelay = &always, &v1.Rollout{Paused: true}, time.Minute
			m.control(t)
			m.pass(50*time.Second, "h01")
			if m.size() != 0 {
				t.Fatalf("a run is opened without the rollout: %s", m.last())
			}
			m.pass(20*time.Second, "h01")
			if len(m.events(`"paused":true`)) != 1 {
				t.Error("no run is opened by the rollout")
			}
		})
	})
}
