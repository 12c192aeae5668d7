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
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// box is a strongbox that turns its secrets around, so that they are not found where they lie.
type box struct{ sealed bool }

var errSealed = errors.New("strongbox sealed")

func (b *box) Seal(secret []byte, purpose string) (string, error) {
	if b.sealed {
		return "", errSealed
	}
	return purpose + "|" + reversed(string(secret)), nil
}

func (b *box) Open(sealed, purpose string) ([]byte, error) {
	turned, fits := strings.CutPrefix(sealed, purpose+"|")
	if b.sealed || !fits {
		return nil, errSealed
	}
	return []byte(reversed(turned)), nil
}

func reversed(s string) string {
	out := []byte(s)
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return string(out)
}

// platform is a rollout with a step at the site that has an output, one on a host, and the hosts.
func platform() *v1.Rollout {
	return &v1.Rollout{OnFailure: "pause", Stages: []v1.Stage{
		{Name: "token", Step: &v1.Step{Do: &v1.Hook{Type: "exec", Script: "token", On: "site"}, Gives: []string{"JOIN"}}},
		{Name: "swact", Step: &v1.Step{Do: &v1.Hook{Type: "exec", Script: "swact"}, Match: &v1.Match{Roles: []string{"controller"}}}},
		{Name: "all"},
	}}
}

// is has hosts say what they are.
func (m *memory) is(role string, protocol int, hosts ...string) {
	for _, host := range hosts {
		m.Alive(host, message.Alive{Application: "app", Role: role, Protocol: protocol})
	}
	synctest.Wait()
}

// gives is the outcome of a step with outputs.
func gives(t message.Task, values map[string]string) message.Outcome {
	o := t.Outcome(true, "")
	o.Outputs = &message.Outputs{Values: values}
	return o
}

// TestSteps checks that a step at the site is run there, and one on a host by the first that is online,
// matches and knows steps, which has the outputs of the step before. On the log they are sealed, and no
// answer of the API has them.
func TestSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "c0", "c1", "c2")
		m.rollout, m.secrets = platform(), &box{}
		m.site = func(_ context.Context, task message.Task) message.Outcome {
			return gives(task, map[string]string{"JOIN": "secret"})
		}
		c, _ := m.control(t)
		m.beat("h01")
		m.is("controller", 0, "c0")
		m.is("controller", format.StepProtocol, "c2", "c1")
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"h01", "c0", "c1", "c2"} {
			m.reply(host, r.ID, message.Prepare)
		}
		if atSite := m.siteTasks(); len(atSite) != 1 || atSite[0].Stage != "token" || atSite[0].Host != "" {
			t.Fatalf("the site runs %+v", atSite)
		}
		asked := m.tasks()
		if len(asked) != 1 || asked[0].Host != "c1" || asked[0].Stage != "swact" || asked[0].Outputs["JOIN"] != "secret" {
			t.Fatalf("the hosts are asked for %+v", asked)
		}
		m.tells("c2", asked[0].Outcome(true, ""))
		forged := asked[0].Outcome(true, "")
		forged.Host = "c2"
		m.tells("c2", forged)
		if n := len(m.events(`"ran"`)); n != 1 {
			t.Fatalf("%d outcomes are on the log", n)
		}
		m.tells("c1", asked[0].Outcome(true, ""))
		if len(m.upgrades()) != 1 {
			t.Errorf("the log ends with %s", m.last())
		}
		for _, record := range m.log.All() {
			if strings.Contains(string(record.Body), "secret") {
				t.Errorf("record %d has the output: %s", record.Seq, record.Body)
			}
		}
		if ran := m.events(`"ran"`); !strings.Contains(ran[0], `"outputs":{"names":["JOIN"],"sealed":"outputs of step token of tenant acme|`) {
			t.Errorf("the log has %s", ran[0])
		}
	})
}

// TestForecastOfSteps checks that a preflight cannot tell when a run ends whose step was never done, and
// then goes by how long it took: 20 seconds, and a minute for the host.
func TestForecastOfSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		step := v1.Stage{Name: "copy", Step: &v1.Step{Do: &v1.Hook{Type: "exec", Script: "copy", On: "site"}}}
		m.rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "all"}}}
		m.site = func(_ context.Context, task message.Task) message.Outcome {
			time.Sleep(20 * time.Second)
			return task.Outcome(true, "")
		}
		c, _ := m.control(t)
		m.beat("h01")
		night := func() {
			r, err := c.Start(t.Context(), "test", start)
			if err != nil {
				t.Fatal(err)
			}
			m.reply("h01", r.ID, message.Prepare)
			m.pass(time.Minute, "h01")
			m.reply("h01", r.ID, message.Upgrade)
			m.pass(time.Minute, "h01")
		}
		night()
		m.declare(store.Seen{Object: theRollout, Rollout: &v1.Rollout{Stages: []v1.Stage{{Name: "all"}, step}}})
		expected := func() *time.Time {
			p, err := c.Preflight(t.Context(), "test", start)
			if err != nil {
				t.Fatal(err)
			}
			if p.Run.ExpectedEnd == nil && p.Run.Forecast != "no forecast while it waits for step copy (how long it takes is unknown)" {
				t.Errorf("the forecast is %q", p.Run.Forecast)
			}
			return p.Run.ExpectedEnd
		}
		if end := expected(); end != nil {
			t.Errorf("before the step was ever done, the run is expected to end at %s", end)
		}
		night()
		if end, want := expected(), m.clock().Add(80*time.Second); end == nil || !end.Equal(want) {
			t.Errorf("the run is expected to end at %v, want %s", end, want)
		}
	})
}

// TestOutputsThatAreNotKept checks that a step fails which does not give what it should, or at a site
// that cannot seal it; and one that would need outputs that cannot be opened.
func TestOutputsThatAreNotKept(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		secrets Secrets
		values  map[string]string
		want    string
	}{
		"none":         {&box{}, nil, "its output JOIN is missing; write a line JOIN=VALUE to descriptor 3"},
		"another":      {&box{}, map[string]string{"JOIN": "x", "KEY": "y"}, `its output "KEY" is not one that gives lists`},
		"no strongbox": {nil, map[string]string{"JOIN": "x"}, "cannot seal its outputs: this site keeps no secrets"},
		"it is sealed": {&box{sealed: true}, map[string]string{"JOIN": "x"}, "cannot seal its outputs: strongbox sealed"},
		"sealed later": {&box{}, map[string]string{"JOIN": "x"}, "cannot open the outputs of step token: strongbox sealed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01")
				m.rollout, m.secrets = platform(), row.secrets
				m.site = func(_ context.Context, task message.Task) message.Outcome { return gives(task, row.values) }
				c, r := m.begun(t, "h01")
				if name == "sealed later" {
					b, is := m.secrets.(*box)
					if !is {
						t.Fatalf("the strongbox is a %T", m.secrets)
					}
					b.sealed = true
					m.is("controller", format.StepProtocol, "h01")
				}
				if w := m.waiting(t, c, r.ID); w.What != run.ForResume || !strings.Contains(w.Detail, "failed: "+row.want+")") {
					t.Errorf("the run waits for %+v", w)
				}
			})
		})
	}
}

// TestStepGoesOnWhileTheRunIsAborted checks that a step at the site is not interrupted by an abort, and
// that the run waits for it.
func TestStepGoesOnWhileTheRunIsAborted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.rollout = platform()
		m.rollout.Stages = m.rollout.Stages[:1:1]
		m.rollout.Stages[0].Step.Gives = nil
		m.rollout.Stages = append(m.rollout.Stages, v1.Stage{Name: "all"})
		m.site = func(ctx context.Context, task message.Task) message.Outcome {
			select {
			case <-ctx.Done():
				t.Error("the step is interrupted")
			case <-time.After(20 * time.Second):
			}
			return task.Outcome(true, "")
		}
		c, r := m.begun(t, "h01")
		if _, err := c.Ask(t.Context(), "ann", run.Abort, why); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if w := m.waiting(t, c, r.ID); w.What != run.ForStep || w.Detail != "step token" {
			t.Errorf("the run waits for %+v", w)
		}
		m.pass(30*time.Second, "h01")
		if len(m.siteTasks()) != 1 || len(m.events(`"result":"aborted"`)) != 1 {
			t.Errorf("the log ends with %s", m.last())
		}
	})
}

// TestNewsOfAStepWithoutAHost checks that a person is told, once, when no host is present that a step
// matches for a minute, also after a restart; and not when one is there.
func TestNewsOfAStepWithoutAHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.rollout, m.news = platform(), newShelf()
		m.rollout.Stages = m.rollout.Stages[1:]
		c, _ := m.control(t)
		m.beat("h01")
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		m.reply("h01", r.ID, message.Prepare)
		blocked := func() (all []string) {
			for _, told := range m.news.told() {
				if strings.HasPrefix(told, "run.blocked") {
					all = append(all, told)
				}
			}
			return all
		}
		m.pass(50*time.Second, "h01")
		if got := blocked(); len(got) != 0 {
			t.Errorf("after 50 s are told %q", got)
		}
		m.pass(10*time.Minute, "h01")
		const want = "run.blocked: Run 2 of tenant acme is blocked: it waits for a host that step swact matches to be present."
		if got := blocked(); len(got) != 1 || got[0] != want {
			t.Errorf("told are %q", got)
		}
		c = m.restart(t)
		m.pass(10*time.Minute, "h01")
		if got := blocked(); len(got) != 1 {
			t.Errorf("after a restart are told %q", got)
		}
		m.is("controller", format.StepProtocol, "h01")
		m.tells("h01", m.askedOf("h01").Outcome(false, "no quorum"))
		m.pass(10*time.Minute, "h01")
		if _, err := c.Ask(t.Context(), "ann", run.Resume, why); err != nil {
			t.Error(err)
		}
		if got := blocked(); len(got) != 1 {
			t.Errorf("with a host that matches are told %q", got)
		}
	})
}
