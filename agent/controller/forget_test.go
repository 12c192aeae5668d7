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

// blocked starts a run of three hosts that waits for h03, which has prepared
// and fallen silent.
func blocked(t *testing.T) (*memory, *Controller, v1.Run) {
	t.Helper()
	m := newMemory("h01", "h02", "h03")
	c, _ := m.control(t)
	m.beat("h01", "h02", "h03")
	r, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	m.reply("h01", r.ID, message.Prepare)
	m.reply("h03", r.ID, message.Prepare)
	m.pass(message.Silence, "h01", "h02")
	if e := m.last(); e != `{"event":"silent","hosts":["h03"]}` {
		t.Fatalf("the log ends with %s", e)
	}
	m.reply("h02", r.ID, message.Prepare)
	view, err := c.Find(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if w := view.WaitingFor; w == nil || w.What != "slot" || w.Detail != "h03 (it is silent) to recover, be released or be deleted" {
		t.Fatalf("the run waits for %+v", w)
	}
	if state, err := c.State(t.Context()); err != nil || state.Status != "waiting" {
		t.Errorf("the status is %q, %v", state.Status, err)
	}
	if strings.Contains(m.last(), "upgrade") {
		t.Fatalf("a host is upgraded while h03 is silent: %s", m.last())
	}
	return m, c, r
}

// pass lets time pass in which only some hosts are heard of.
func (m *memory) pass(span time.Duration, hosts ...string) {
	for ; span > 0; span -= message.Heartbeat {
		time.Sleep(min(span, message.Heartbeat))
		m.beat(hosts...)
	}
}

// ends plays the rest of a run that h03 has held up, and checks how it and h03
// end.
func ends(t *testing.T, m *memory, c *Controller, r v1.Run, result, h03 string) {
	t.Helper()
	for _, host := range []string{"h01", "h02", "h03"} {
		m.reply(host, r.ID, message.Upgrade)
	}
	view, err := c.Find(t.Context(), r.ID)
	if err != nil || view.Result != result || view.Hosts[2].Status != h03 {
		t.Errorf("the run ended as %+v, %v", view, err)
	}
}

// TestSilentHostIsHeard checks invariant 1: a silent host holds the slot until
// it is heard of.
func TestSilentHostIsHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c, r := blocked(t)
		m.pass(time.Hour, "h01", "h02")
		if strings.Contains(m.last(), "upgrade") {
			t.Fatalf("a host is upgraded while h03 is silent: %s", m.last())
		}
		m.beat("h03")
		if want := `{"action":"upgrade","host":"h01"}`; m.last() != want {
			t.Fatalf("the log ends with %s, not %s", m.last(), want)
		}
		if e := m.back(2); e != `{"event":"recovered","hosts":["h03"]}` {
			t.Errorf("the log has %s", e)
		}
		ends(t, m, c, r, "completed", "upgraded")
	})
}

// TestSilentHostIsDeleted checks the other way out of invariant 1, and that
// only a host that is known and silent can be deleted.
func TestSilentHostIsDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c, r := blocked(t)
		var refused *run.Refused
		if err := deleted(t, c, "h01"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "h01 is online") {
			t.Errorf("to delete h01 is answered %v", err)
		}
		if err := deleted(t, c, "h77"); !errors.Is(err, run.ErrNoHost) {
			t.Errorf("to delete h77 is answered %v", err)
		}
		if err := deleted(t, c, "h03"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if e := m.back(2); e != `{"event":"deleted","hosts":["h03"],"by":"ann","why":"scrapped"}` {
			t.Errorf("the log has %s", e)
		}
		if h, _ := m.kept("h03"); h.Name != "" {
			t.Errorf("the store still has %+v", h)
		}
		ends(t, m, c, r, "partial", "skipped")
		if hosts, err := c.Hosts(t.Context(), v1.HostFilter{}); err != nil || len(hosts) != 2 {
			t.Errorf("the hosts are %+v, %v", hosts, err)
		}
		m.beat("h03")
		time.Sleep(hostPause)
		synctest.Wait()
		if h, _ := m.kept("h03"); h.Name == "" {
			t.Error("a host that comes back is not kept")
		}
	})
}

// deleted has ann delete a host, and waits a minute for it.
func deleted(t *testing.T, c *Controller, host string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return c.Forget(ctx, host, run.Deletion{By: "ann", Why: "scrapped"})
}

// TestForgetTooLate checks that a host which comes back while it is deleted
// stays known, in the store, too.
func TestForgetTooLate(t *testing.T) {
	t.Parallel()
	m := newMemory("h01")
	o := m.options(t)
	s := stateOf(o)
	k := s.writer
	s.heard("h01", message.Alive{Application: "app"}, time.Now())
	if err := k.delete(t.Context(), "acme", "h01"); err != nil {
		t.Fatal(err)
	}
	k.write(t.Context())
	if h, _ := m.kept("h01"); h.Name != "" {
		t.Error("an earlier write of h01 comes after its deletion")
	}
	var refused *run.Refused
	if err := s.forget("h01", run.Deletion{By: "ann"}); !errors.As(err, &refused) {
		t.Errorf("answered %v", err)
	}
	k.write(t.Context())
	if h, _ := m.kept("h01"); h.Name == "" || s.hosts.known["h01"] == nil {
		t.Error("h01 is lost")
	}
}

// TestForgottenLastRun checks that a host which comes back after its deletion does not get the last
// run of the one that was deleted, if that was still to be kept.
func TestForgottenLastRun(t *testing.T) {
	t.Parallel()
	m := newMemory()
	s := stateOf(m.options(t))
	s.hosts.known["h01"] = &host{Host: store.Host{Tenant: "acme", Name: "h01", LastRun: v1.HostRun{ID: 7, Status: "failed"}}, seen: time.Now().Add(-time.Hour)}
	s.writer.lastRuns.Put("acme", queuedRuns{runs: s.hosts.lastRuns()})
	if err := errors.Join(s.writer.delete(t.Context(), "acme", "h01"), s.forget("h01", run.Deletion{By: "ann"})); err != nil {
		t.Fatal(err)
	}
	s.heard("h01", message.Alive{Application: "app"}, time.Now())
	s.writer.write(t.Context())
	if err := s.writer.keepLastRuns(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h, _ := m.kept("h01"); h.Name == "" || h.LastRun.ID != 0 {
		t.Errorf("h01 is kept as %+v", h)
	}
}

// TestForgetIsOnTheLog checks that a deletion is answered only once the log has
// it, and who deleted the host with it; and that one who could not wait can ask
// again.
func TestForgetIsOnTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c, r := blocked(t)
		m.fails(errFull, false)
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Forget(impatient, "h03", run.Deletion{By: "bob"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the log takes nothing the deletion is answered with %v", err)
		}
		answered := make(chan error, 1)
		go func() { answered <- c.Forget(t.Context(), "h03", run.Deletion{By: "ann"}) }()
		m.pass(longestPause, "h01", "h02")
		select {
		case err := <-answered:
			t.Errorf("asked again it is answered with %v", err)
		default:
		}
		m.fails(nil, false)
		m.pass(longestPause, "h01", "h02")
		select {
		case err := <-answered:
			if got := m.events(`"deleted"`); err != nil || len(got) != 1 || got[0] != `{"event":"deleted","hosts":["h03"],"by":"ann"}` {
				t.Errorf("the deletion is answered with %v, and the log has %q", err, got)
			}
		default:
			t.Error("the deletion is not answered though the log takes it")
		}
		ends(t, m, c, r, "partial", "skipped")
	})
}

// TestForgetAndBack checks that whoever deletes a host is told that it has come
// back before the log had the deletion.
func TestForgetAndBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := blocked(t)
		m.fails(errFull, false)
		answered := make(chan error, 1)
		go func() { answered <- c.Forget(t.Context(), "h03", run.Deletion{By: "ann"}) }()
		synctest.Wait()
		m.beat("h03")
		synctest.Wait()
		select {
		case err := <-answered:
			var refused *run.Refused
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "h03 has come back") {
				t.Errorf("the deletion is answered with %v", err)
			}
		default:
			t.Error("the deletion is not answered")
		}
	})
}

// TestForgetAfterARestart checks that no host is deleted of which a controller
// that has just started cannot know whether it is at work.
func TestForgetAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.begun(t, "h01", "h02")
		c := m.restart(t)
		if err := deleted(t, c, "h01"); !errors.Is(err, run.ErrNotReady) || !strings.Contains(err.Error(), "not heard of host h01 yet") {
			t.Errorf("before h01 was heard of its deletion is answered with %v", err)
		}
		m.beat("h01", "h02")
		var refused *run.Refused
		if err := deleted(t, c, "h01"); !errors.As(err, &refused) {
			t.Errorf("the deletion of h01, which is at work, is answered with %v", err)
		}
		if n := len(m.upgrades()); n != 1 {
			t.Errorf("%d hosts are upgraded", n)
		}
		c = m.restart(t)
		m.pass(gracePeriod, "h02")
		if err := deleted(t, c, "h01"); err != nil {
			t.Errorf("the deletion of h01, which was not heard of, is answered with %v", err)
		}
	})
}
