package controller

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// become has a controller that runs take another role, and waits until it has.
func become(c *Controller, active bool) {
	c.SetActive(active)
	synctest.Wait()
}

// TestPassive checks that a passive controller shows what is and writes nothing:
// no run of an open window, no missed window, no host, no history, no task.
func TestPassive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.config = &always
		c := New(m.options(t))
		c.SetActive(false)
		m.runs(t, c)
		m.pass(10*time.Minute, "h01", "h02")
		if n := m.size(); n != 0 {
			t.Fatalf("a passive controller has written %s", m.last())
		}
		if h, puts := m.kept("h02"); puts != 0 || h.Name != "" {
			t.Errorf("a passive controller has written h02: %+v", h)
		}
		if err := c.Ready(t.Context()); err != nil {
			t.Errorf("a passive controller is not ready: %v", err)
		}
		if hosts, err := c.Hosts(t.Context(), v1.HostFilter{}); err != nil || len(hosts) != 2 || !hosts[1].Online {
			t.Errorf("it shows the hosts %+v, %v", hosts, err)
		}
		_, started := c.Start(t.Context(), "ann", start)
		_, asked := c.Ask(t.Context(), "ann", run.Abort, why)
		for what, err := range map[string]error{"start": started, "abort": asked, "forget": deleted(t, c, "h01")} {
			if !errors.Is(err, run.ErrNotReady) || !strings.Contains(err.Error(), "it is passive") {
				t.Errorf("%s is answered with %v", what, err)
			}
		}
		become(c, true)
		m.pass(2*time.Minute, "h01", "h02")
		if n := len(m.events(`"opened"`)); n != 1 {
			t.Errorf("once it is active %d runs are opened", n)
		}
		if h, _ := m.kept("h02"); h.Name != "h02" {
			t.Error("once it is active h02 is not written")
		}
	})
}

// TestRoleChangesDuringARun checks that a run goes on whatever the role of its
// controller was between two of its records, each command being sent once, and
// that a run which ended while the controller was passive is in the history once
// it is active.
func TestRoleChangesDuringARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = &v1.Rollout{Checks: &v1.RolloutChecks{AfterHost: script}}
		c, r := m.begun(t, "h01", "h02")
		changed, stop, err := c.Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		turn := func() {
			become(c, false)
			m.pass(10*time.Second, "h01", "h02")
			become(c, true)
			m.pass(10*time.Second, "h01", "h02")
		}
		turn()
		for _, host := range []string{"h01", "h02"} {
			become(c, false)
			m.reply(host, r.ID, message.Upgrade)
			before := m.size()
			m.pass(time.Minute, "h01", "h02")
			if m.size() != before || len(m.tasks()) != 0 {
				t.Fatalf("a passive controller goes on with %s and the tasks %+v", m.last(), m.tasks())
			}
			if shown, err := c.Find(t.Context(), r.ID); err != nil || shown.Finished() {
				t.Errorf("it shows %+v, %v", shown, err)
			}
			become(c, true)
			m.pass(10*time.Second, "h01", "h02")
			for len(changed) > 0 {
				<-changed
			}
			tasks := m.tasks()
			m.tells(host, tasks[len(tasks)-1].Outcome(true, ""))
			if len(changed) != 1 {
				t.Error("who watches gets no word after the roles have changed")
			}
			if host == "h02" {
				break
			}
			turn()
			m.mu.Lock()
			m.asked = nil
			m.mu.Unlock()
			m.pass(10*time.Second, "h01", "h02")
			if tasks := m.tasks(); len(tasks) != 0 {
				t.Errorf("tasks are requested again: %+v", tasks)
			}
		}
		if n := len(m.upgrades()); n != 2 {
			t.Errorf("%d hosts were sent upgrade", n)
		}
		if shown, err := c.Find(t.Context(), r.ID); err != nil || shown.Result != "completed" {
			t.Errorf("the run is %+v, %v", shown, err)
		}
	})
}

// TestHistoryIsOfTheActive checks that a run that ends while this controller is
// passive is left to the active one, and written by this one if there was none.
func TestHistoryIsOfTheActive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		c, r := m.begun(t, "h01")
		m.reply("h01", r.ID, message.Upgrade)
		m.mu.Lock()
		m.runPuts = 0
		m.mu.Unlock()
		m.LoseRun("acme", r.ID)
		become(c, false)
		m.pass(time.Minute, "h01")
		if _, puts := m.runsKept(); puts != 0 {
			t.Errorf("a passive controller has tried %d writes to the history", puts)
		}
		become(c, true)
		m.pass(time.Minute, "h01")
		if kept, puts := m.runsKept(); puts != 1 || len(kept) != 1 || kept[0].ID != r.ID {
			t.Errorf("after %d writes the history is %+v", puts, kept)
		}
	})
}

// TestWaitingWhileTheRoleChanges checks that whoever waits for a controller that
// becomes passive is told so, and is not left waiting.
func TestWaitingWhileTheRoleChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		c, _ := m.begun(t, "h01")
		release := m.hold()
		m.reply("h77", 1, message.Prepare)
		answer := asking(t.Context(), c, "ann", run.Abort, why)
		become(c, false)
		if got := answered(t, answer); !errors.Is(got.err, run.ErrNotReady) {
			t.Errorf("answered with %v", got.err)
		}
		release()
		if err := c.Ready(t.Context()); err != nil {
			t.Errorf("it is not ready: %v", err)
		}
	})
}

// TestActiveBeforeAndAfterRun checks that the role may be set before Run and
// after its end.
func TestActiveBeforeAndAfterRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		c := New(m.options(t))
		for range 10 {
			c.SetActive(false)
			c.SetActive(true)
		}
		m.runs(t, c)
		m.beat("h01")
		for range 10 {
			c.SetActive(false)
			c.SetActive(true)
		}
		synctest.Wait()
		if err := c.Ready(t.Context()); err != nil {
			t.Errorf("it is not ready: %v", err)
		}
		m.stop()
		c.SetActive(false)
		c.SetActive(true)
		if err := c.Ready(t.Context()); !errors.Is(err, run.ErrNotReady) {
			t.Errorf("after its end it answers %v", err)
		}
	})
}

// TestFollowsAnew checks that a controller goes on when whatever it follows ends
// because something may be missing: what has changed meanwhile counts, and a host
// whose versions are gone has none.
func TestFollowsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.calendars["freezes"] = freezeFrom("23:00", "1h")
		m.versions["h01"], m.versions["h02"] = []byte(`{"kernel":"6.1"}`), []byte(`{"kernel":"6.1"}`)
		c, r := m.begun(t, "h01", "h02")
		for range 3 {
			m.turnStale()
			time.Sleep(2 * log.StaleRest)
			synctest.Wait()
		}
		m.turnStale()
		m.mu.Lock()
		m.versions = map[string][]byte{"h01": []byte(`{"kernel":"6.2"}`)}
		m.rollout = &v1.Rollout{Paused: true}
		m.config = &v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "another"}}}
		delete(m.calendars, "freezes")
		m.mu.Unlock()
		m.reply("h01", r.ID, message.Upgrade)
		if n := len(m.upgrades()); n != 1 {
			t.Fatalf("%d hosts were sent upgrade while nothing is followed", n)
		}
		time.Sleep(2 * log.StaleRest)
		synctest.Wait()
		m.pass(time.Minute, "h01", "h02")
		shown, err := c.Find(t.Context(), r.ID)
		if err != nil || shown.Hosts[0].Status != "upgraded" || shown.Paused != "by rollout" {
			t.Errorf("the run is %+v, %v", shown, err)
		}
		if s, err := c.State(t.Context()); err != nil || len(s.WorkerApplications) != 1 || s.WorkerApplications[0].Name != "another" {
			t.Errorf("the state is %+v, %v", s, err)
		}
		if n, err := ask(t.Context(), c, func(s *state) int { return len(s.intent.schedule.Freezes) }); err != nil || n != 0 {
			t.Errorf("a calendar that is gone still has %d freezes, %v", n, err)
		}
		hosts, err := c.Hosts(t.Context(), v1.HostFilter{})
		if err != nil || len(hosts) != 2 || hosts[0].Versions["kernel"] != "6.2" || len(hosts[1].Versions) != 0 || !hosts[1].Online {
			t.Errorf("the hosts are %+v, %v", hosts, err)
		}
	})
}
