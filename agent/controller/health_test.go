package controller

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// askedOf returns the last task of each host that was asked.
func (m *memory) askedOf(host string) (last message.Task) {
	for _, t := range m.tasks() {
		if t.Host == host {
			last = t
		}
	}
	return last
}

// TestHealth checks that the site and the hosts are asked without a run, that the report tells what
// has come out so far and the rest later, and that nothing of it is on the log.
func TestHealth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = askedFirst()
		m.rollout.Checks.Start = append(m.rollout.Checks.Start, v1.StartCheck{
			Check: v1.Check{Name: "raid", Type: "exec", Script: "raid"}, Match: &v1.Match{Roles: []string{"storage"}},
		})
		m.site = func(_ context.Context, task message.Task) message.Outcome {
			return task.Checked([]error{errors.New("one alarm")})
		}
		c, _ := m.control(t)
		m.beat("h01", "h02")
		before := m.size()
		report, err := c.Health(t.Context(), v1.AskHealth{})
		want := v1.HealthReport{ID: report.ID, Environment: "default", Waiting: 1, Checks: []v1.HealthCheck{
			{Check: "alarms", Result: "failed", Text: "one alarm"},
			{Check: "backup", Host: "h01", Result: "waiting"},
			{Check: "raid", Result: "not asked", Text: "no host of the run matches it"},
		}}
		if err != nil || !reflect.DeepEqual(report, want) {
			t.Fatalf("got %+v, %v; want %+v", report, err, want)
		}
		task := m.askedOf("h01")
		stranger := task
		stranger.Attempt++
		m.tells("h01", stranger.Checked([]error{errors.New("of another request")}))
		m.tells("h01", task.Checked([]error{nil}))
		m.tells("h01", task.Checked([]error{errors.New("again")}))
		want.Waiting, want.Checks[1].Result = 0, "passed"
		if report, err = c.HealthOf(t.Context(), report.ID); err != nil || !reflect.DeepEqual(report, want) {
			t.Errorf("got %+v, %v; want %+v", report, err, want)
		}
		if m.size() != before {
			t.Errorf("the log has %s", m.last())
		}
		asked := len(m.tasks())
		m.pass(time.Minute, "h01", "h02")
		if n := len(m.tasks()); n != asked {
			t.Errorf("h01 is asked %d times more", n-asked)
		}
	})
}

// TestHealthWithoutAnAnswer checks that a host which never answers has failed after the limit of its
// checks, that not any number of requests is under way, and that one is forgotten in the end.
func TestHealthWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.rollout = askedFirst()
		m.site = func(_ context.Context, task message.Task) message.Outcome { return task.Checked([]error{nil}) }
		c, _ := m.control(t)
		m.beat("h01")
		first, err := c.Health(t.Context(), v1.AskHealth{})
		if err != nil || first.Complete() {
			t.Fatalf("got %+v, %v", first, err)
		}
		for range mostAsking - 1 {
			if _, err := c.Health(t.Context(), v1.AskHealth{}); err != nil {
				t.Fatal(err)
			}
		}
		var refused *run.Refused
		if _, err := c.Health(t.Context(), v1.AskHealth{}); !errors.As(err, &refused) {
			t.Errorf("one more request came to %v", err)
		}
		m.pass(3*time.Minute, "h01")
		report, err := c.HealthOf(t.Context(), first.ID)
		if want := "no outcome within 1m30s; its worker may be silent, or older than these checks"; err != nil || report.OK || report.Checks[1].Text != want {
			t.Errorf("got %+v, %v", report, err)
		}
		for range mostHealths {
			r, err := c.Health(t.Context(), v1.AskHealth{})
			if err != nil {
				t.Fatal(err)
			}
			m.tells("h01", m.askedOf("h01").Checked([]error{nil}))
			if r, err = c.HealthOf(t.Context(), r.ID); err != nil || !r.OK {
				t.Fatalf("got %+v, %v", r, err)
			}
		}
		if _, err := c.HealthOf(t.Context(), first.ID); !errors.Is(err, run.ErrNoHealth) {
			t.Errorf("the first request is known: %v", err)
		}
	})
}

// TestPreflightAsksForTheHealth checks that a rehearsal of a start asks the checks of the hosts that
// the start chooses.
func TestPreflightAsksForTheHealth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = askedFirst()
		m.site = func(_ context.Context, task message.Task) message.Outcome { return task.Checked([]error{nil}) }
		c, _ := m.control(t)
		m.beat("h01", "h02")
		request := start
		request.Hosts = []string{"h02"}
		p, err := c.Preflight(t.Context(), "ann", request)
		if err != nil || p.Health == nil || !p.Health.OK || p.Health.Checks[1].Result != "not asked" || len(m.tasks()) != 0 {
			t.Errorf("got %+v, %v; the hosts were asked for %+v", p.Health, err, m.tasks())
		}
	})
}
