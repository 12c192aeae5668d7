package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// nights is an upgrade over several runs: a step that gives an output, the standby controller, a step on
// the active one, and the other hosts.
func nights() *v1.Rollout {
	return &v1.Rollout{OnFailure: "stop", Stages: []v1.Stage{
		{Name: "token", Step: &v1.Step{Do: &v1.Hook{Type: "exec", Script: "token", On: "site"}, Gives: []string{"JOIN"}}},
		{Name: "standby", Match: &v1.Match{Roles: []string{"standby"}}, PointOfNoReturn: true},
		{Name: "swact", Step: &v1.Step{Do: &v1.Hook{Type: "exec", Script: "swact"}, Match: &v1.Match{Roles: []string{"active"}}}},
		{Name: "rest"},
	}}
}

// until starts a run of all hosts until a stage.
func (m *memory) until(t *testing.T, c *Controller, stage string) v1.Run {
	t.Helper()
	r, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "test", Until: stage})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return r
}

// found returns a run.
func found(t *testing.T, c *Controller, id uint64) v1.Run {
	t.Helper()
	r, err := c.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestUntil plays an upgrade over three runs: the first ends after its first step and has no host, the
// second after the standby controller, and the third goes on to the end though the controllers have
// swapped their roles. No step is taken twice, no host upgraded twice, and the last step has the output of
// the first.
func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("c1", "c2", "w1")
		m.rollout, m.secrets = nights(), &box{}
		tokens := 0
		m.site = func(_ context.Context, task message.Task) message.Outcome {
			tokens++
			return gives(task, map[string]string{"JOIN": "secret"})
		}
		c, _ := m.control(t)
		m.is("active", format.StepProtocol, "c1")
		m.is("standby", format.StepProtocol, "c2")
		m.is("worker", format.StepProtocol, "w1")

		r := m.until(t, c, "token")
		if first := found(t, c, r.ID); first.Result != "completed" || first.Reason != "1 of 1 step done, until stage token" || len(first.Hosts) != 0 {
			t.Fatalf("the first run: %+v", first)
		}
		if prepared := m.events(`"action":"prepare"`); len(prepared) != 1 || !strings.HasPrefix(prepared[0], `{"action":"prepare","not-after":`) {
			t.Errorf("its prepare is %s", prepared)
		}

		r = m.until(t, c, "standby")
		m.reply("c2", r.ID, message.Prepare)
		m.reply("c2", r.ID, message.Upgrade)
		second := found(t, c, r.ID)
		if second.Result != "completed" || second.Reason != "1 of 1 host upgraded, until stage standby" {
			t.Fatalf("the second run: %+v", second)
		}
		var refused *run.Refused
		if _, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "test", Until: "token"}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "nothing is left to do until stage token") {
			t.Errorf("a run until a stage that is done: %v", err)
		}

		m.is("standby", format.StepProtocol, "c1")
		m.is("active", format.StepProtocol, "c2")
		r = m.until(t, c, "")
		m.reply("c1", r.ID, message.Prepare)
		m.reply("w1", r.ID, message.Prepare)
		asked := m.tasks()
		if len(asked) != 1 || asked[0].Host != "c2" || asked[0].Stage != "swact" || asked[0].Outputs["JOIN"] != "secret" {
			t.Fatalf("the third run asks for %+v", asked)
		}
		m.tells("c2", asked[0].Outcome(true, ""))
		m.reply("c1", r.ID, message.Upgrade)
		m.reply("w1", r.ID, message.Upgrade)
		third := found(t, c, r.ID)
		if third.Result != "completed" || third.Reason != "2 of 2 hosts upgraded, 1 of 1 step done" || third.WayBack == nil || third.WayBack.Closed == nil || third.WayBack.Until != "standby" {
			t.Errorf("the third run: %+v", third)
		}
		if tokens != 1 {
			t.Errorf("the token was made %d times", tokens)
		}

		r = m.until(t, c, "token")
		if again := found(t, c, r.ID); again.Result != "completed" || tokens != 2 {
			t.Errorf("after the last stage the next run begins anew: %+v, %d tokens", again, tokens)
		}
	})
}

// TestUntilAnUnknownStage checks that the error names the member and the stages, whether a window is open
// or not.
func TestUntilAnUnknownStage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.rollout = nights()
		c, _ := m.control(t)
		m.beat("h01")
		for _, request := range []v1.Start{{Until: "swap"}, {Until: "swap", OverrideWindow: true, Reason: "test"}} {
			_, err := c.Start(t.Context(), "test", request)
			if problems, are := errors.AsType[v1.Problems](err); !are || problems.Error() != `until: "swap" is no stage of the rollout; use one of token, standby, swact, rest` {
				t.Errorf("%+v: %v", request, err)
			}
		}
	})
}

// TestRetryTakesNoStep checks that a retry of what failed in a run takes no step that has been taken, also if
// the run has passed its last stage, or was one of chosen hosts; that its hosts get the outputs of the
// steps; and that the next run of all hosts takes all steps.
func TestRetryTakesNoStep(t *testing.T) {
	t.Parallel()
	for name, hosts := range map[string][]string{"a run of all hosts": nil, "a run of chosen hosts": {"w1", "w2"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("w1", "w2")
				m.rollout, m.secrets = &v1.Rollout{OnFailure: "continue", Stages: []v1.Stage{nights().Stages[0], {Name: "rest", MaxUnavailable: "100%"}}}, &box{}
				tokens := 0
				m.site = func(_ context.Context, task message.Task) message.Outcome {
					tokens++
					return gives(task, map[string]string{"JOIN": "secret"})
				}
				c, _ := m.control(t)
				starts := func(request v1.Start) v1.Run {
					t.Helper()
					m.beat("w1", "w2")
					request.OverrideWindow, request.Reason = true, "test"
					r, err := c.Start(t.Context(), "test", request)
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					return r
				}
				// plays has some hosts fail, and the others succeed.
				plays := func(r v1.Run, fails string, hosts ...string) v1.Run {
					for _, host := range hosts {
						m.reply(host, r.ID, message.Prepare)
					}
					for _, host := range hosts {
						if strings.Contains(fails, host) {
							m.answer(host, r, message.Upgrade, "no space left")
						} else {
							m.reply(host, r.ID, message.Upgrade)
						}
					}
					return found(t, c, r.ID)
				}
				first := plays(starts(v1.Start{Hosts: hosts}), "w1 w2", "w1", "w2")
				if first.Result != "failed" && first.Result != "partial" || tokens != 1 {
					t.Fatalf("the first run: %+v, %d tokens", first, tokens)
				}
				second := plays(starts(v1.Start{RetryOf: first.ID}), "w2", "w1", "w2")
				third := plays(starts(v1.Start{RetryOf: second.ID}), "", "w2")
				if third.Result != "completed" || third.Reason != "1 of 1 host upgraded" || third.GoesOnSince != first.ID {
					t.Errorf("the retry: %+v", third)
				}
				if tokens != 1 {
					t.Errorf("after the retries the step was taken %d times", tokens)
				}
				opened := m.events(`"opened"`)
				if last := opened[len(opened)-1]; !strings.Contains(last, `"outputs":{"names":["JOIN"]`) {
					t.Errorf("the retry was opened without the outputs of the step: %s", last)
				}
				if r := plays(starts(v1.Start{}), "", "w1", "w2"); tokens != 2 || r.GoesOnSince != 0 {
					t.Errorf("the next run of all hosts goes on since %d, with %d tokens", r.GoesOnSince, tokens)
				}
			})
		})
	}
}

// TestRetryTakesFailedStep retries a run that went on without a step that failed: the retry takes this step in its
// place, with the outputs of the one that is done, which it does not take again. A retry of chosen hosts leaves
// it alone, and once it is done nothing is left.
func TestRetryTakesFailedStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("w1", "w2")
		m.rollout, m.secrets = &v1.Rollout{OnFailure: "continue", Stages: []v1.Stage{
			nights().Stages[0],
			{Name: "open", Step: &v1.Step{Do: &v1.Hook{Type: "exec", Script: "open", On: "site"}}},
			{Name: "rest", MaxUnavailable: "100%"},
		}}, &box{}
		fails := true
		m.site = func(_ context.Context, task message.Task) message.Outcome {
			if task.Stage == "open" {
				return task.Outcome(!fails, "not now")
			}
			return gives(task, map[string]string{"JOIN": "secret"})
		}
		c, _ := m.control(t)
		// plays starts a run in which the hosts that it has as members succeed, and returns the steps that it took.
		plays := func(request v1.Start, fails string, hosts ...string) (r v1.Run, took string) {
			t.Helper()
			m.beat("w1", "w2")
			before := len(m.siteTasks())
			request.OverrideWindow, request.Reason = true, "test"
			r, err := c.Start(t.Context(), "test", request)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			for _, host := range hosts {
				m.reply(host, r.ID, message.Prepare)
			}
			for _, host := range hosts {
				if host == fails {
					m.answer(host, r, message.Upgrade, "no space left")
				} else {
					m.reply(host, r.ID, message.Upgrade)
				}
			}
			for _, task := range m.siteTasks()[before:] {
				took += task.Stage + " " + task.Outputs["JOIN"] + ";"
			}
			return found(t, c, r.ID), took
		}
		first, took := plays(v1.Start{}, "w2", "w1", "w2")
		if first.Result != "partial" || took != "token ;open secret;" {
			t.Fatalf("the first run has ended %s and taken %q", first.Result, took)
		}
		if r, took := plays(v1.Start{RetryOf: first.ID, Hosts: []string{"w2"}}, "w2", "w2"); r.Result == "completed" || took != "" {
			t.Errorf("the retry of a host has ended %s and taken %q", r.Result, took)
		}
		second, took := plays(v1.Start{RetryOf: first.ID}, "", "w2")
		if second.Result != "partial" || took != "open secret;" {
			t.Errorf("the retry has ended %s and taken %q", second.Result, took)
		}
		fails = false
		third, took := plays(v1.Start{RetryOf: second.ID}, "")
		if third.Result != "completed" || third.Reason != "1 of 1 step done" || took != "open secret;" {
			t.Errorf("the retry of nothing but a step has ended %s: %s, and taken %q", third.Result, third.Reason, took)
		}
		if _, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "test", RetryOf: second.ID}); !strings.Contains(whyRefused(err), "its step open is not left any more") {
			t.Errorf("a step that is done is retried: %v", err)
		}
	})
}

// TestUntilSoaks ends a run after a stage that soaks. The next one, of another process, prepares at once and
// waits for the rest of the soak before it begins the next stage, like for a soak of its own.
func TestUntilSoaks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("c1", "w1")
		m.rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "canary", Match: &v1.Match{Hosts: []string{"c1"}}, Soak: "1h"}, {Name: "rest"}}}
		c, _ := m.control(t)
		m.beat("c1", "w1")
		r := m.until(t, c, "canary")
		m.reply("c1", r.ID, message.Prepare)
		m.reply("c1", r.ID, message.Upgrade)
		if first := found(t, c, r.ID); first.Result != "completed" {
			t.Fatalf("the first run: %+v", first)
		}
		soaks := time.Now().Add(time.Hour)
		time.Sleep(20 * time.Minute)
		c = m.restart(t)
		m.beat("c1", "w1")
		r = m.until(t, c, "")
		m.reply("w1", r.ID, message.Prepare)
		waits := found(t, c, r.ID)
		if w := waits.WaitingFor; w == nil || w.What != run.ForSoak || w.Until == nil || !w.Until.Equal(soaks) || !strings.HasPrefix(w.Detail, "stage canary to soak until ") {
			t.Errorf("the next run waits for %+v, want the soak of canary until %s", w, soaks)
		}
		if s := waits.Stages; len(s) != 2 || s[0].Phase != run.StageSoaking || s[0].DoneIn == 0 || s[1].Phase != "pending" {
			t.Errorf("its stages are %+v", s)
		}
		time.Sleep(time.Until(soaks) - time.Second)
		m.beat("c1", "w1")
		if n := len(m.upgrades()); n != 1 {
			t.Errorf("%d hosts are upgraded before the soak is over", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		m.reply("w1", r.ID, message.Upgrade)
		if second := found(t, c, r.ID); second.Result != "completed" {
			t.Errorf("the second run: %+v", second)
		}
	})
}
