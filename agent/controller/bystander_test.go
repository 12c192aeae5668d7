package controller

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// answer is a host that answers with a result.
func (m *memory) answer(host string, r v1.Run, action message.Action, result message.ReplyOutcome) {
	m.answers(host, r, message.Reply{Action: action, Result: message.ResultOf(string(result))})
}

// answers is a host that gives a reply.
func (m *memory) answers(host string, r v1.Run, reply message.Reply) {
	m.mu.Lock()
	m.add(message.Record{Kind: message.ReplyRecord, Host: host, Run: r.ID, Action: reply.Action, Outcome: reply.Result.Outcome.Beside(), Class: reply.Result.Class, Body: reply.Encode()})
	m.mu.Unlock()
	synctest.Wait()
}

// TestRetryBesideOthers checks that a retry counts the hosts that it leaves
// alone: while one of them is silent or not well, nobody of its stage is taken
// out of service beside it.
func TestRetryBesideOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// between is what happens between the run and its retry.
		between func(t *testing.T, m *memory, c *Controller)
		waits   string
		mended  func(m *memory, c *Controller) error
	}{
		"silent, which counts": {
			func(_ *testing.T, m *memory, _ *Controller) { m.pass(5*time.Minute, "h01") },
			"h02 (it is silent)",
			func(m *memory, _ *Controller) error { m.beat("h02"); return nil },
		},
		"not well": {
			func(t *testing.T, m *memory, c *Controller) {
				t.Helper()
				r, err := c.Start(t.Context(), "test", start)
				if err != nil {
					t.Fatal(err)
				}
				m.answer("h01", r, message.Prepare, message.Done)
				m.answer("h02", r, message.Prepare, message.Done)
				m.answer("h01", r, message.Upgrade, message.Done)
				m.pass(2*time.Minute, "h01", "h02") // h02 never answers.
			},
			"h02 to finish the upgrade of run 11",
			func(_ *memory, c *Controller) error {
				_, err := c.Ask(context.Background(), "ann", run.Release, v1.Ask{Reason: "a test", Host: "h02"})
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01", "h02")
				m.rollout = &v1.Rollout{OnFailure: "continue", Absent: rollout.CountAbsent, Timeouts: &v1.CommandTimeouts{Upgrade: "1m"}}
				controller, first := m.begun(t, "h01", "h02")
				m.answer("h01", first, message.Upgrade, "no space left")
				m.answer("h02", first, message.Upgrade, message.Done)
				c.between(t, m, controller)
				retry, err := controller.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "again", RetryOf: first.ID})
				if err != nil {
					t.Fatal(err)
				}
				upgrades := len(m.upgrades())
				m.answer("h01", retry, message.Prepare, message.Done)
				view, err := controller.Find(t.Context(), retry.ID)
				if err != nil || view.WaitingFor == nil || !strings.HasPrefix(view.WaitingFor.Detail, c.waits) || len(m.upgrades()) != upgrades {
					t.Fatalf("with %d upgrades more the retry waits for %+v, %v", len(m.upgrades())-upgrades, view.WaitingFor, err)
				}
				if err := c.mended(m, controller); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if want := `{"action":"upgrade","host":"h01"}`; m.last() != want {
					t.Errorf("the log ends with %s, not %s", m.last(), want)
				}
			})
		})
	}
}

// TestFreezeBeforePrepare checks that nobody is prepared in a freeze, though the
// run was opened before it was known.
func TestFreezeBeforePrepare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		end := time.Now().Add(4 * time.Hour)
		m.mu.Lock()
		m.add(message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(message.Opened{
			Trigger: "window", Members: []string{"h01"}, NotAfter: end, Rollout: rollout.Default(1),
		})})
		m.mu.Unlock()
		time.Sleep(30 * time.Minute)
		m.calendars = map[string]v1.Calendar{"quarter": freezeFrom("00:10", "2h")}
		m.control(t)
		m.beat("h01")
		m.pass(time.Minute, "h01")
		if got := m.last(); !strings.Contains(got, `"finished","result":"timed-out"`) || len(m.events(`"action":"prepare"`)) > 0 {
			t.Errorf("the log ends with %s", got)
		}
	})
}
