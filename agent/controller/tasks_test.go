package controller

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

var script = []v1.Check{{Type: "exec", Script: "look"}}

// outcome has a host tell how a task came out.
func (m *memory) tells(host string, o message.Outcome) {
	m.Outcome(host, o)
	synctest.Wait()
}

// checking starts a run whose hosts are checked after their upgrade, of which
// h01 is upgraded and asked for its checks.
func checking(t *testing.T, hosts ...string) (*memory, *Controller, message.Task) {
	t.Helper()
	m := newMemory(hosts...)
	m.rollout = &v1.Rollout{Checks: &v1.RolloutChecks{AfterHost: script}}
	c, r := m.begun(t, hosts...)
	m.reply("h01", r.ID, message.Upgrade)
	asked := m.tasks()
	if len(asked) != 1 || asked[0].Host != "h01" || asked[0].Kind != message.AfterHost || asked[0].Run != r.ID {
		t.Fatalf("the hosts were asked for %+v", asked)
	}
	return m, c, asked[0]
}

// TestCommandsTellOfChecks checks that each command says whether its run checks the hosts
// after their upgrade, beside its body, which is Avassa's.
func TestCommandsTellOfChecks(t *testing.T) {
	t.Parallel()
	for name, rollout := range map[string]*v1.Rollout{
		"no rollout": nil, "checks before": {Checks: &v1.RolloutChecks{BeforeHost: script}}, "checks after": {Checks: &v1.RolloutChecks{AfterHost: script}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01")
				m.rollout = rollout
				m.begun(t, "h01")
				if name == "checks before" {
					m.tells("h01", m.tasks()[0].Outcome(true, ""))
				}
				var told []message.Action
				for _, record := range m.log.All() {
					if d := record.Decode(); d.Command != nil {
						told = append(told, d.Command.Action)
						if record.Checks != (name == "checks after") || bytes.Contains(record.Body, []byte("checks")) {
							t.Errorf("%s says %t: %s", d.Command.Action, record.Checks, record.Body)
						}
					}
				}
				if !slices.Equal(told, []message.Action{message.Prepare, message.Upgrade}) {
					t.Errorf("the commands are %v", told)
				}
			})
		})
	}
}

// TestHostIsAskedAgain checks that a host is asked for a task until its outcome
// comes, since either may be lost, and not after that.
func TestHostIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c, task := checking(t, "h01")
		time.Sleep(2*askAgain + time.Millisecond)
		synctest.Wait()
		asked := m.tasks()
		if len(asked) != 3 || slices.ContainsFunc(asked, func(t message.Task) bool { return t.Key() != task.Key() }) {
			t.Fatalf("h01 was asked for %+v", asked)
		}
		m.tells("h01", task.Outcome(true, ""))
		if r, err := c.Find(t.Context(), task.Run); err != nil || r.Result != "completed" {
			t.Errorf("the run is %+v, %v", r, err)
		}
		time.Sleep(10 * askAgain)
		if n := len(m.tasks()); n != 3 {
			t.Errorf("h01 is asked on, %d times", n)
		}
	})
}

// TestOutcomesThatDoNotCount checks what a host may tell without effect.
func TestOutcomesThatDoNotCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from   string
		change func(*message.Outcome)
	}{
		"of the next attempt":           {"h01", func(o *message.Outcome) { o.Attempt++ }},
		"of another run":                {"h01", func(o *message.Outcome) { o.Run++ }},
		"of another kind":               {"h01", func(o *message.Outcome) { o.Kind = message.Drain }},
		"told by another host":          {"h02", func(*message.Outcome) {}},
		"of a host that has no task":    {"h02", func(o *message.Outcome) { o.Host = "h02" }},
		"of the fleet, told by a host":  {"h01", func(o *message.Outcome) { o.Kind, o.Host = message.Fleet, "" }},
		"told by a host that is not it": {"h77", func(o *message.Outcome) { o.Host = "h77" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, controller, task := checking(t, "h01", "h02")
				o := task.Outcome(true, "")
				c.change(&o)
				before := m.size()
				m.tells(c.from, o)
				if m.size() != before {
					t.Errorf("the log has %s", m.last())
				}
				m.tells("h01", task.Outcome(true, ""))
				m.tells("h01", task.Outcome(false, "again"))
				if n := len(m.events(`"ran"`)); n != 1 {
					t.Errorf("there are %d outcomes on the log", n)
				}
				if r, err := controller.Find(t.Context(), task.Run); err != nil || r.Hosts[0].Status != "upgraded" {
					t.Errorf("h01 is %+v, %v", r.Hosts[0], err)
				}
			})
		})
	}
}

// TestOutcomeIsTwiceBeforeItIsOnTheLog checks that the log gets one outcome of
// each task.
func TestOutcomeIsTwiceBeforeItIsOnTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _, task := checking(t, "h01", "h02")
		release := m.hold()
		m.tells("h01", task.Outcome(true, ""))
		m.tells("h01", task.Outcome(false, "again"))
		release()
		m.tells("h01", task.Outcome(true, ""))
		if n := len(m.events(`"ran"`)); n != 1 {
			t.Errorf("there are %d outcomes on the log", n)
		}
	})
}

// TestTaskAfterARestart checks that the next controller asks for what the one
// before it has asked for.
func TestTaskAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _, task := checking(t, "h01", "h02")
		c := m.restart(t)
		synctest.Wait()
		m.beat("h01", "h02")
		asked := m.tasks()
		if len(asked) != 2 || asked[1].Key() != task.Key() {
			t.Fatalf("the hosts were asked for %+v", asked)
		}
		m.tells("h01", task.Outcome(true, ""))
		if r, err := c.Find(t.Context(), task.Run); err != nil || r.Hosts[0].Status != "upgraded" || len(m.events(`"ran"`)) != 1 {
			t.Errorf("h01 is %+v, %v", r.Hosts[0], err)
		}
	})
}

// TestRecheck checks that an unhealthy host is checked again half a minute later,
// and frees its slot once it is healthy.
func TestRecheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = &v1.Rollout{OnFailure: "continue", Checks: &v1.RolloutChecks{BeforeHost: script}}
		c, r := m.begun(t, "h01", "h02")
		m.tells("h01", m.tasks()[0].Outcome(false, "no light"))
		m.pass(30*time.Second-time.Millisecond, "h01", "h02")
		if n := len(m.tasks()); n != 1 {
			t.Fatalf("the hosts were asked %d times", n)
		}
		m.pass(time.Millisecond, "h01", "h02")
		asked := m.tasks()
		if len(asked) != 2 || asked[1].Host != "h01" || asked[1].Kind != message.BeforeHost || asked[1].Attempt != asked[0].Attempt+1 {
			t.Fatalf("the hosts were asked for %+v", asked)
		}
		if w := m.waiting(t, c, r.ID); w.What != "slot" {
			t.Errorf("the run waits for %+v", w)
		}
		m.tells("h01", asked[1].Outcome(true, ""))
		if asked = m.tasks(); len(asked) != 3 || asked[2].Host != "h02" {
			t.Errorf("the hosts were asked for %+v", asked)
		}
	})
}

// waiting returns what a run waits for.
func (m *memory) waiting(t *testing.T, c *Controller, id uint64) v1.WaitingFor {
	t.Helper()
	r, err := c.Find(t.Context(), id)
	if err != nil || r.WaitingFor == nil {
		t.Fatalf("the run waits for nothing: %+v, %v", r, err)
	}
	return *r.WaitingFor
}

// drained is a rollout that drains each host by a hook at the site.
func drained() *v1.Rollout {
	none := 0
	return &v1.Rollout{Hooks: &v1.RolloutHooks{Drain: &v1.Hook{Type: "exec", Script: "drain", On: "site", Retries: &none}}}
}

// TestSiteTask checks that a hook at the site is run there, by nobody else, and
// that no host can say how it came out.
func TestSiteTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.rollout = drained()
		m.site = func(ctx context.Context, task message.Task) message.Outcome {
			_ = wait.Sleep(ctx, time.Second)
			return task.Outcome(true, "")
		}
		_, r := m.begun(t, "h01")
		tasks := m.siteTasks()
		if len(tasks) != 1 || tasks[0].Kind != message.Drain || tasks[0].Host != "h01" || tasks[0].Run != r.ID || len(m.tasks()) != 0 {
			t.Fatalf("the site runs %+v, the hosts %+v", tasks, m.tasks())
		}
		m.tells("h01", tasks[0].Outcome(true, ""))
		if len(m.events(`"ran"`)) != 0 {
			t.Fatal("a host says how a hook of the site came out")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if want := `{"action":"upgrade","host":"h01"}`; m.last() != want || len(m.siteTasks()) != 1 {
			t.Errorf("the log ends with %s, not %s", m.last(), want)
		}
	})
}

// TestSiteThatRunsNothing checks that a task at a site that runs none fails in
// words.
func TestSiteThatRunsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.rollout = drained()
		c, r := m.begun(t, "h01")
		view, err := c.Find(t.Context(), r.ID)
		if want := "its drain hook failed: this site runs no checks and hooks"; err != nil || view.Result != "failed" || view.Hosts[0].Error != want {
			t.Errorf("the run ended as %+v, %v", view, err)
		}
	})
}

// TestTaskIsCancelled checks that a task at the site ends when the run wants it
// no more.
func TestTaskIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.rollout = drained()
		ended := make(chan struct{})
		m.site = func(ctx context.Context, task message.Task) message.Outcome {
			<-ctx.Done()
			close(ended)
			return task.Outcome(false, "cancelled")
		}
		c, _ := m.begun(t, "h01")
		if _, err := c.Ask(t.Context(), "ann", run.Abort, why); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Fatal("the task is still in progress")
		}
		if len(m.events(`"ran"`)) != 0 || len(m.events(`"finished"`)) != 1 {
			t.Errorf("the log ends with %s", m.last())
		}
	})
}

// TestFleetTask checks that the checks of the fleet are run at the site before
// each host starts, once if they pass and half a minute later again if not.
func TestFleetTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = &v1.Rollout{OnFailure: "continue", Checks: &v1.RolloutChecks{Fleet: script}}
		var well atomic.Bool
		m.site = func(_ context.Context, task message.Task) message.Outcome {
			return task.Outcome(well.Load(), "no light")
		}
		_, r := m.begun(t, "h01", "h02")
		if n := len(m.siteTasks()); n != 1 || len(m.upgrades()) != 0 || len(m.events(`"ran"`)) != 1 {
			t.Fatalf("the checks were run %d times, the log ends with %s", n, m.last())
		}
		m.pass(30*time.Second-time.Millisecond, "h01", "h02")
		if n := len(m.siteTasks()); n != 1 {
			t.Fatalf("the checks were run %d times", n)
		}
		well.Store(true)
		m.pass(time.Millisecond, "h01", "h02")
		if n := len(m.siteTasks()); n != 2 || len(m.upgrades()) != 1 {
			t.Fatalf("the checks were run %d times, the log ends with %s", n, m.last())
		}
		m.reply("h01", r.ID, message.Upgrade)
		m.reply("h02", r.ID, message.Upgrade)
		if n := len(m.siteTasks()); n != 3 || len(m.events(`"ran"`)) != 3 || len(m.events(`"result":"completed"`)) != 1 {
			t.Errorf("the checks were run %d times, the log ends with %s", n, m.last())
		}
	})
}
