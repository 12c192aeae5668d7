package controller

import (
	"context"
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

// lostUpgrade is a run that has ended because h01 never answered its upgrade:
// h01 holds its slot since.
func lostUpgrade(t *testing.T) (*memory, *Controller, v1.Run) {
	t.Helper()
	m := newMemory("h01", "h02")
	m.rollout = &v1.Rollout{Timeouts: &v1.CommandTimeouts{Upgrade: "1m"}}
	c, r := m.begun(t, "h01", "h02")
	m.pass(2*time.Minute, "h01", "h02")
	r, err := c.Find(t.Context(), r.ID)
	if err != nil || r.Result != "failed" || r.Hosts[0].Slot == nil {
		t.Fatalf("the run is %+v, %v", r, err)
	}
	return m, c, r
}

// slotOfH01 returns why h01 has a slot in the run that begins next; empty when
// it has none.
func (m *memory) slotOfH01(t *testing.T, c *Controller) string {
	t.Helper()
	r, err := c.Start(t.Context(), "test", start)
	if err != nil {
		t.Fatal(err)
	}
	return r.Hosts[0].SlotReason
}

// TestOutOfServiceInTheNextRun checks that a host that is out of service at the end
// of a run is out of service in the next run too, also for a controller that has
// just started.
func TestOutOfServiceInTheNextRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _, _ := lostUpgrade(t)
		c := m.restart(t)
		m.beat("h01", "h02")
		if got := m.slotOfH01(t, c); got != "it has not answered upgrade of an earlier run" {
			t.Errorf("in the next run h01 has a slot because %q", got)
		}
	})
}

// TestNextRunDoesNotWait checks that the next run does not wait for a host that has not
// answered a command of the run before: the host is left out, by name, with the reason.
func TestNextRunDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = &v1.Rollout{Timeouts: &v1.CommandTimeouts{Upgrade: "1m"}, Stages: []v1.Stage{{Name: "all", MaxUnavailable: "2"}}, MaxFailures: "2"}
		c, r := m.begun(t, "h01", "h02")
		m.reply("h02", r.ID, message.Upgrade)
		m.pass(2*time.Minute, "h01", "h02")
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		m.reply("h02", r.ID, message.Prepare)
		if want := `{"action":"upgrade","host":"h02"}`; m.last() != want {
			t.Errorf("the log ends with %s, not %s", m.last(), want)
		}
		r, err = c.Find(t.Context(), r.ID)
		if h := r.Hosts[0]; err != nil || h.Status != "skipped" || h.Error != "it had not answered upgrade of an earlier run when the other hosts were prepared" || h.Slot == nil {
			t.Errorf("h01 is shown as %+v, %v", h, err)
		}
	})
}

// TestReleaseAfterTheEnd checks that a held slot can be released while no run is
// under way, that a slot that is not held cannot, and that the run's story names the
// operator.
func TestReleaseAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c, r := lostUpgrade(t)
		var refused *run.Refused
		if got := answered(t, asking(t.Context(), c, "ann", run.Release, v1.Ask{Reason: "why not", Host: "h02"})); !errors.As(got.err, &refused) {
			t.Errorf("the release of h02, which holds no slot, is answered with %+v, %v", got.run, got.err)
		}
		got := answered(t, asking(t.Context(), c, "ann", run.Release, v1.Ask{Reason: "it was reinstalled", Host: "h01"}))
		if got.err != nil || got.run.ID != r.ID || got.run.Hosts[0].Slot != nil {
			t.Errorf("the release of h01 is answered with %+v, %v", got.run, got.err)
		}
		c = m.restart(t)
		m.beat("h01", "h02")
		time.Sleep(2 * rearchiveAfter)
		synctest.Wait()
		kept, err := m.Run(t.Context(), "acme", r.ID)
		if last := kept.Events[len(kept.Events)-1]; err != nil || last.Event != "released" || last.By != "ann" {
			t.Errorf("the story in the history ends with %+v, %v", last, err)
		}
		if got := m.slotOfH01(t, c); got != "" {
			t.Errorf("in the next run h01 has a slot because %q", got)
		}
	})
}

// TestDeletedAfterTheEnd checks that a host that is deleted while no run is under
// way no longer holds a slot.
func TestDeletedAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := lostUpgrade(t)
		m.pass(message.Silence, "h02")
		if err := deleted(t, c, "h01"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if want := `{"event":"deleted","hosts":["h01"],"by":"ann","why":"scrapped"}`; m.last() != want {
			t.Errorf("the log ends with %s, not %s", m.last(), want)
		}
		m.beat("h01")
		if got := m.slotOfH01(t, c); got != "" {
			t.Errorf("in the next run h01, which has come back, has a slot because %q", got)
		}
	})
}

// TestOutOfServiceBeyondTheRun checks that a host that holds a slot and is no member
// of the next run is shown with its slot there, and still holds it afterwards.
func TestOutOfServiceBeyondTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := lostUpgrade(t)
		m.declare(store.Seen{Object: theRollout, Rollout: &v1.Rollout{Exempt: &v1.Match{Hosts: []string{"h01"}}}})
		synctest.Wait()
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		if h := r.Hosts[1]; h.Hostname != "h01" || h.Slot == nil || h.Status != "skipped" {
			t.Errorf("h01, which is left out, is shown as %+v", h)
		}
		m.reply("h02", r.ID, message.Prepare)
		m.reply("h02", r.ID, message.Upgrade)
		m.declare(store.Seen{Object: theRollout, Rollout: &v1.Rollout{}})
		synctest.Wait()
		if got := m.slotOfH01(t, c); got != "it has not answered upgrade of an earlier run" {
			t.Errorf("in the run after that h01 has a slot because %q", got)
		}
	})
}

// TestUnhealthyAndSilent checks that no command is sent to an unhealthy host that
// falls silent between its reply to prepare and its admission.
func TestUnhealthyAndSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = &v1.Rollout{Checks: &v1.RolloutChecks{AfterHost: []v1.Check{{Name: "c", Type: "tcp", Address: "localhost:22"}}}}
		c, r := m.begun(t, "h01", "h02")
		m.answer("h01", r, message.Upgrade, "broken")
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		m.answer("h01", r, message.Prepare, message.Done)
		m.pass(10*time.Minute, "h02")
		m.answer("h02", r, message.Prepare, message.Done)
		if want := `{"event":"silent","hosts":["h01"]}`; len(m.events(want)) != 1 || len(m.upgrades()) != 1 {
			t.Errorf("after %d upgrades the log ends with %s", len(m.upgrades()), m.last())
		}
		m.beat("h01")
		if want := `{"action":"upgrade","host":"h01"}`; m.last() != want {
			t.Errorf("the log ends with %s, not %s", m.last(), want)
		}
	})
}

// TestManyAnswersAfterTheEnd checks that hosts which answer after the end of
// their run are well then, and that the history is not written for each.
func TestManyAnswersAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hosts := []string{"h01", "h02", "h03", "h04"}
		m := newMemory(hosts...)
		m.rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "100%"}}, Timeouts: &v1.CommandTimeouts{Upgrade: "1m"}}
		c, r := m.begun(t, hosts...)
		m.pass(2*time.Minute, hosts...)
		for _, host := range hosts {
			m.answer(host, r, message.Upgrade, message.Done)
		}
		next, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range next.Hosts {
			if h.Slot != nil {
				t.Errorf("in the next run %s has a slot because %q", h.Hostname, h.SlotReason)
			}
		}
		synctest.Wait()
		kept, err := m.Run(t.Context(), "acme", r.ID)
		if err != nil || kept.Hosts[3].Slot != nil || m.runPuts != 2 || len(kept.Events) < 10 {
			t.Errorf("after %d writes the history has %+v, %v", m.runPuts, kept, err)
		}
	})
}

// TestOpeningMissesNoAnswer checks that a run is not opened by what was known
// before the last answer came.
func TestOpeningMissesNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c, r := lostUpgrade(t)
		release := m.hold()
		m.answers("h01", r, message.Reply{Action: message.Upgrade, Result: message.NotDone(message.Unknown, "", "this host has no journal")})
		if _, err := c.Start(t.Context(), "test", start); !errors.Is(err, run.ErrNotReady) {
			t.Errorf("a start by a controller that is behind is answered %v", err)
		}
		release()
		synctest.Wait()
		if got := m.slotOfH01(t, c); got != "nobody knows what it did" {
			t.Errorf("in the next run h01 has a slot because %q", got)
		}
	})
}

// TestOpeningBehindAnAnswer checks that a run is not opened on a log that has an
// answer which its controller has not seen, however slowly that comes.
func TestOpeningBehindAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c, r := lostUpgrade(t)
		release := m.hold()
		m.answer("h01", r, message.Upgrade, message.Done)
		before := len(m.events(`"opened"`))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _ = c.Start(ctx, "test", start)
		if n := len(m.events(`"opened"`)); n != before {
			t.Errorf("it was opened all the same: %s", m.last())
		}
		release()
	})
}

// TestReleaseOfASilentHost checks that a host which is silent and was released,
// or deleted, is not called silent again, also by a controller that starts
// anew, or one that never knew of the deletion.
func TestReleaseOfASilentHost(t *testing.T) {
	t.Parallel()
	for name, let := range map[string]func(context.Context, *Controller) error{
		"released": func(ctx context.Context, c *Controller) error {
			_, err := c.Ask(ctx, "ann", run.Release, v1.Ask{Reason: "its mainboard is dead", Host: "h01"})
			return err
		},
		"deleted": func(ctx context.Context, c *Controller) error { return c.Forget(ctx, "h01", run.Deletion{By: "ann"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01", "h02", "h03")
				m.rollout = &v1.Rollout{OnFailure: "continue", Timeouts: &v1.CommandTimeouts{Upgrade: "5m"}}
				c, _ := m.begun(t, "h01", "h02", "h03")
				m.pass(10*time.Minute, "h02", "h03")
				if err := let(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				m.pass(time.Minute, "h02", "h03")
				m.restart(t)
				m.pass(2*time.Minute, "h02", "h03")
				// The others are, until they are heard of after the restart.
				if said := m.events(`{"event":"silent","hosts":["h01"`); len(said) > 0 {
					t.Errorf("the log has %q", said)
				}
				if want := `{"action":"upgrade","host":"h02"}`; len(m.events(want)) != 1 {
					t.Errorf("h02 does not go; the log ends with %s", m.last())
				}
			})
		})
	}
}

// TestSilentBeyondTheRun checks that a host that fell silent during a run, untouched, is
// out of service in the next run, also for a controller that has just started, until it
// is heard of, be it between two runs. A host that falls silent between two runs is
// absent.
func TestSilentBeyondTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		_, first := m.begun(t, "h01", "h02")
		m.pass(message.Silence+time.Minute, "h01")
		m.answer("h01", first, message.Upgrade, "no space left")
		if last := m.last(); !strings.Contains(last, `"result":"failed"`) {
			t.Fatalf("the first run ends with %s", last)
		}
		m.pass(gracePeriod, "h01")
		c := m.restart(t)
		m.pass(gracePeriod+time.Minute, "h01")
		second, err := c.Start(t.Context(), "test", start)
		if err != nil || second.Hosts[1].Status != "unreachable" || second.Hosts[1].SlotReason != "it is silent" {
			t.Fatalf("the second run has %+v, %v", second.Hosts, err)
		}
		if got := answered(t, asking(t.Context(), c, "ann", run.Abort, v1.Ask{Reason: "enough"})); got.err != nil {
			t.Fatal(got.err)
		}
		m.beat("h02")
		synctest.Wait()
		if want := `{"event":"recovered","hosts":["h02"]}`; m.last() != want {
			t.Fatalf("between two runs h02 is heard of, and the log ends with %s, not %s", m.last(), want)
		}
		m.pass(message.Silence+time.Minute, "h01")
		third, err := c.Start(t.Context(), "test", start)
		if err != nil || third.Hosts[1].Status != "unreachable" || third.Hosts[1].Slot != nil {
			t.Errorf("the third run has %+v, %v", third.Hosts, err)
		}
	})
}
