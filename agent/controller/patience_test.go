package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestPrepareThatHangs checks that a host whose prepare hangs does not cost the others their
// window: they are upgraded after a tenth of it, and the host is left out after another tenth,
// with what it has told last.
func TestPrepareThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02", "h03")
		c, _ := m.control(t)
		m.beat("h01", "h02", "h03")
		opened := time.Now()
		r, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "a test", Duration: "2m"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		m.reply("h01", r.ID, message.Prepare)
		m.reply("h03", r.ID, message.Prepare)
		m.Progress("h02", message.Progress{Run: r.ID, Percent: 40, Message: "fetching lists"})
		shown := look(t, c, r.ID)
		if w := shown.WaitingFor; w == nil || w.Detail != "h02 to answer prepare until 2000-01-01T00:00:13Z, and then begins without it" || w.Until == nil || !w.Until.Equal(opened.Add(13*time.Second)) {
			t.Fatalf("the run waits for %+v", w)
		}
		time.Sleep(12*time.Second - time.Nanosecond)
		synctest.Wait()
		if got := m.upgrades(); len(got) != 0 {
			t.Fatalf("hosts are upgraded before the patience of the run is at its end: %s", got)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := m.last(); got != `{"action":"upgrade","host":"h01"}` {
			t.Fatalf("the log ends with %s", got)
		}
		if h := look(t, c, r.ID).Hosts[1]; h.Status != string(run.HostPreparing) || h.Note != "it is late: the run has begun without it" || h.Progress != "40% fetching lists" {
			t.Errorf("h02 is shown as %+v", h)
		}
		m.reply("h01", r.ID, message.Upgrade)
		m.reply("h03", r.ID, message.Upgrade)
		time.Sleep(12 * time.Second)
		synctest.Wait()
		shown = look(t, c, r.ID)
		if shown.Result != string(run.Partial) || shown.Reason != "2 of 3 hosts upgraded; left out: h02" || shown.Hosts[1].Error != "it did not prepare in time; last it told: 40% fetching lists" {
			t.Errorf("the run ended as %s: %s; h02 is %+v", shown.Result, shown.Reason, shown.Hosts[1])
		}
	})
}

// TestActionThatFails checks that a run shows why the action of a host fails while the host tries
// it again, and that a host that is left out has that reason.
func TestActionThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, _ := m.control(t)
		m.beat("h01", "h02")
		r, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "a test", Duration: "2m"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		m.Progress("h02", message.Progress{Run: r.ID, Percent: 0, Message: "fetching lists", Failing: "cannot reach deb.example"})
		synctest.Wait()
		if h := look(t, c, r.ID).Hosts[1]; h.Failing != "cannot reach deb.example" || h.Progress != "0% fetching lists" {
			t.Errorf("h02 is shown as %+v", h)
		}
		m.reply("h01", r.ID, message.Prepare)
		time.Sleep(12 * time.Second)
		synctest.Wait()
		m.reply("h01", r.ID, message.Upgrade)
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if h := look(t, c, r.ID).Hosts[1]; h.Failing != "" || h.Error != "it did not prepare in time; last it told: cannot reach deb.example" {
			t.Errorf("h02 is shown as %+v", h)
		}
	})
}

// TestHostEndsItsAction checks that a run shows when a host ends its action itself, if that is
// before the run gives it up.
func TestHostEndsItsAction(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit time.Duration
		want  time.Duration
	}{
		"the host first":    {10 * time.Minute, 10 * time.Minute},
		"the site first":    {2 * time.Hour, time.Hour},
		"it does not say":   {0, time.Hour},
		"it is over by now": {time.Minute, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01")
				control, r := m.begun(t, "h01")
				sent := time.Now()
				m.Alive("h01", message.Alive{Application: "app", SelfReport: message.SelfReport{ActionLimitSeconds: int(c.limit / time.Second)}})
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				shown := look(t, control, r.ID)
				if got := shown.Hosts[0].GivesUpAt; got == nil || got.Sub(sent) != c.want || !shown.WaitingFor.Until.Equal(*got) {
					t.Errorf("h01 is given up at %s, and the run waits for %+v; want %s", got, shown.WaitingFor, c.want)
				}
			})
		})
	}
}

// TestRetryBesideReleased checks that a host which was released in its upgrade, and still
// carries it out, does not hold up the retry: that leaves it out by name.
func TestRetryBesideReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, r := m.begun(t, "h01", "h02")
		for _, ask := range []struct {
			what run.Ask
			body v1.Ask
		}{{run.Abort, v1.Ask{Reason: "h01 hangs", Now: true}}, {run.Release, v1.Ask{Reason: "h01 hangs", Host: "h01"}}} {
			if got := answered(t, asking(t.Context(), c, "ann", ask.what, ask.body)); got.err != nil {
				t.Fatal(got.err)
			}
		}
		again, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "again", RetryOf: r.ID})
		if err != nil {
			t.Fatal(err)
		}
		if w := again.WaitingFor; w == nil || w.Detail != "h02 to answer prepare" {
			t.Errorf("the retry waits for %+v", w)
		}
		m.reply("h02", again.ID, message.Prepare)
		shown := look(t, c, again.ID)
		if got := m.last(); got != `{"action":"upgrade","host":"h02"}` || shown.Hosts[0].Error != "it had not answered upgrade of an earlier run when the other hosts were prepared" {
			t.Errorf("the log ends with %s, and h01 is %+v", got, shown.Hosts[0])
		}
		// Whoever looks is told what h01 may still be at, until it answers the new run: it does one
		// thing after the other.
		m.reply("h02", again.ID, message.Upgrade)
		if h := look(t, c, again.ID).Hosts[0]; h.Unanswered != "upgrade" || h.UnansweredOf != r.ID {
			t.Errorf("h01 is %+v", h)
		}
		m.reply("h01", r.ID, message.Upgrade)
		m.reply("h01", again.ID, message.Prepare)
		if h := look(t, c, again.ID).Hosts[0]; h.Unanswered != "" || h.UnansweredOf != 0 {
			t.Errorf("h01 is %+v", h)
		}
	})
}

// look returns a run as the API shows it.
func look(t *testing.T, c *Controller, id uint64) v1.Run {
	t.Helper()
	r, err := c.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
