package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestSilenceDuringARun checks that the run is told once of a host that falls
// silent and once of its return, and of none that is at work: a reboot takes
// longer than a heartbeat.
func TestSilenceDuringARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02", "h03")
		_, r := m.begun(t, "h01", "h02", "h03")
		m.pass(10*message.Silence, "h02")
		if n := len(m.events(`"silent"`)); n != 1 || m.last() != `{"event":"silent","hosts":["h03"]}` {
			t.Fatalf("there are %d events, the last is %s", n, m.last())
		}
		m.reply("h01", r.ID, message.Upgrade)
		if m.last() != `{"action":"upgrade","result":"done"}` {
			t.Errorf("h01 has just answered, and the log ends with %s", m.last())
		}
		m.pass(message.Silence, "h02")
		if m.last() != `{"event":"silent","hosts":["h01"]}` {
			t.Errorf("h01 is done and not heard of, and the log ends with %s", m.last())
		}
		m.beat("h03", "h01")
		if n := len(m.events(`"recovered"`)); n == 0 || m.last() != `{"action":"upgrade","host":"h02"}` {
			t.Errorf("there are %d events, the last is %s", n, m.last())
		}
		before := m.size()
		m.pass(time.Hour/2, "h01", "h02", "h03")
		if m.size() != before {
			t.Errorf("the log goes on with %s", m.last())
		}
	})
}

// TestDeletedHostFreesItsSlot checks the way out for a host that failed at its
// upgrade and never comes back: it holds its slot until it is deleted.
func TestDeletedHostFreesItsSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = lenient()
		c, r := m.begun(t, "h01", "h02")
		m.pass(90*time.Minute, "h02") // h01 is given up after an hour.
		if w := m.waiting(t, c, r.ID); w.What != "slot" || len(m.upgrades()) != 1 {
			t.Fatalf("the run waits for %+v", w)
		}
		if err := deleted(t, c, "h01"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if want := `{"action":"upgrade","host":"h02"}`; m.last() != want {
			t.Errorf("the log ends with %s, not %s", m.last(), want)
		}
	})
}

// TestUpgradedHostIsDeleted checks that a run is told nothing of a host that
// is done, heard of and deleted, and once of one that has fallen silent since.
func TestUpgradedHostIsDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, r := m.begun(t, "h01", "h02")
		m.reply("h01", r.ID, message.Upgrade)
		m.pass(message.Silence, "h02")
		if err := deleted(t, c, "h01"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		silent, gone := len(m.events(`"silent"`)), m.events(`"deleted"`)
		if silent != 1 || len(gone) != 1 || gone[0] != `{"event":"deleted","hosts":["h01"],"by":"ann","why":"scrapped"}` {
			t.Errorf("the log has %d events silent, and %s", silent, gone)
		}
		m.reply("h02", r.ID, message.Upgrade)
		if view, err := c.Find(t.Context(), r.ID); err != nil || view.Result != "completed" {
			t.Errorf("the run ended as %s, %v", view.Result, err)
		}
	})
}

// TestRestartDuringARun checks that a controller which has just started sends
// no command before it knows who is there.
func TestRestartDuringARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait                      time.Duration
		heard                     []string
		silent, resumed, upgrades int
	}{
		"nobody is heard of yet": {gracePeriod - time.Millisecond, nil, 0, 0, 0},
		"one is missing":         {gracePeriod - time.Millisecond, []string{"h01", "h02"}, 0, 0, 0},
		"all are heard of":       {0, []string{"h01", "h02", "h03"}, 0, 1, 1},
		"one stays silent":       {gracePeriod, []string{"h01", "h02"}, 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01", "h02", "h03")
				m.rollout = held.Rollout
				_, _ = m.begun(t, "h01", "h02", "h03")
				m.rollout = let.Rollout
				m.restart(t)
				m.beat(c.heard...)
				time.Sleep(c.wait)
				synctest.Wait()
				silent, resumed, upgrades := len(m.events(`{"event":"silent","hosts":["h03"]}`)), len(m.events(`"resumed"`)), len(m.upgrades())
				if silent != c.silent || resumed != c.resumed || upgrades != c.upgrades {
					t.Errorf("the log has %d silent, %d resumed, %d upgrade; want %d, %d, %d", silent, resumed, upgrades, c.silent, c.resumed, c.upgrades)
				}
			})
		})
	}
}

// TestAbortAfterARestart checks that somebody who aborts a run does not wait
// for hosts that may be gone.
func TestAbortAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = held.Rollout
		_, _ = m.begun(t, "h01", "h02")
		c := m.restart(t)
		begun := time.Now()
		if _, err := c.Ask(t.Context(), "ann", "abort", why); err != nil || !time.Now().Equal(begun) {
			t.Errorf("answered with %v after %s", err, time.Since(begun))
		}
	})
}

// TestOverhear checks that what another controller has heard counts here too
// for as long as a heartbeat does, and so does a host's reply: two controllers
// of which one hears nobody do not contradict each other without end.
func TestOverhear(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = &v1.Rollout{MinPrepared: "100%"} // The run waits for both.
		c, _ := m.control(t)
		m.beat("h01", "h02")
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		m.reply("h01", r.ID, message.Prepare)
		time.Sleep(message.Silence)
		synctest.Wait()
		if want := `{"event":"silent","hosts":["h01","h02"]}`; m.last() != want {
			t.Fatalf("the log ends with %s, not %s", m.last(), want)
		}
		m.mu.Lock()
		m.add(message.Record{Kind: message.EventRecord, Run: r.ID, Body: message.EncodeEvent(message.Recovered{Hosts: []string{"h01"}})})
		before := m.size()
		m.mu.Unlock()
		time.Sleep(message.Silence - time.Second)
		synctest.Wait()
		if n := m.size(); n != before {
			t.Errorf("the log grows by %d records: %s", n-before, m.last())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if want := `{"event":"silent","hosts":["h01"]}`; m.last() != want {
			t.Errorf("the log ends with %s, not %s", m.last(), want)
		}
	})
}
