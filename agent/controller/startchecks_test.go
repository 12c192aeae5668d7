package controller

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// askedFirst is a rollout that asks the site and the host h01 before it prepares any host.
func askedFirst() *v1.Rollout {
	return &v1.Rollout{Checks: &v1.RolloutChecks{Start: []v1.StartCheck{
		{Check: v1.Check{Name: "alarms", Type: "exec", Script: "alarms"}},
		{Check: v1.Check{Name: "backup", Type: "exec", Script: "backup"}, Match: &v1.Match{Hosts: []string{"h01"}}},
	}}}
}

// started starts a run in the background, and returns what comes of that.
func started(t *testing.T, c *Controller) <-chan v1.Run {
	t.Helper()
	come := make(chan v1.Run, 1)
	go func() {
		r, err := c.Start(t.Context(), "ann", start)
		if err != nil {
			t.Error(err)
		}
		come <- r
	}()
	synctest.Wait()
	return come
}

// TestStartChecks checks that no host is prepared before the site and the host that are asked have
// answered, that a controller which takes over asks the host again, and that the run says meanwhile
// what it waits for.
func TestStartChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = askedFirst()
		var atSite []message.Task
		m.site = func(_ context.Context, task message.Task) message.Outcome {
			atSite = append(atSite, task)
			return task.Checked(make([]error, len(task.Checks)))
		}
		c, _ := m.control(t)
		m.beat("h01", "h02")
		come := started(t, c)
		asked := m.tasks()
		if len(asked) != 1 || asked[0].Host != "h01" || asked[0].Kind != message.Start || len(asked[0].Checks) != 1 || asked[0].Checks[0].Name != "backup" {
			t.Fatalf("the hosts were asked for %+v", asked)
		}
		if len(atSite) != 1 || atSite[0].Checks[0].Name != "alarms" || len(m.events(`"action":"prepare"`)) != 0 {
			t.Fatalf("the site was asked for %+v, and the log has %s", atSite, m.last())
		}
		select {
		case r := <-come:
			t.Fatalf("the start came to %+v", r)
		default:
		}
		time.Sleep(startHold)
		opened := <-come
		if opened.Phase != string(run.Open) || opened.WaitingFor == nil || opened.WaitingFor.Detail != "the start checks of h01" {
			t.Fatalf("after %s the start came to %+v", startHold, opened)
		}
		if _, err := c.Start(t.Context(), "ann", start); err == nil || !strings.Contains(err.Error(), "waits for the start checks of h01") {
			t.Errorf("another start is answered by %v", err)
		}
		c = m.restart(t)
		synctest.Wait()
		m.beat("h01", "h02")
		again := m.tasks()
		if again[len(again)-1].Key() != asked[0].Key() {
			t.Errorf("after a restart the hosts were asked for %+v", again)
		}
		m.tells("h01", asked[0].Checked([]error{nil}))
		r, err := c.Find(t.Context(), opened.ID)
		if err != nil || r.ID == opened.ID || r.Phase != string(run.Preparing) {
			t.Errorf("by the id %d the run is %+v, %v", opened.ID, r, err)
		}
	})
}

// TestStaysVisible checks that a run with start checks stays visible between the last answer and its
// prepare, which may have to wait until the log takes it.
func TestStaysVisible(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = askedFirst()
		m.site = func(_ context.Context, task message.Task) message.Outcome { return task.Outcome(true, "") }
		c, _ := m.control(t)
		m.beat("h01", "h02")
		come := started(t, c)
		time.Sleep(startHold)
		opened := <-come
		m.fails(errors.New("no space left"), false)
		m.mu.Lock()
		m.add(message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(message.Ran{Outcome: m.asked[0].Checked([]error{nil})})})
		m.mu.Unlock()
		synctest.Wait()
		if runs, err := c.Runs(t.Context(), v1.RunFilter{}); err != nil || len(runs) != 1 || runs[0].ID != opened.ID || runs[0].Phase != string(run.Open) {
			t.Errorf("once all have answered the runs are %+v, %v", runs, err)
		}
		if r, err := c.Find(t.Context(), opened.ID); err != nil || r.ID != opened.ID {
			t.Errorf("by the id %d the run is %+v, %v", opened.ID, r, err)
		}
	})
}

// TestStartChecksFail checks that a run whose checks fail sends no host a command, does not use up
// its window, and is tried again after retry-after. The window is from 02:00 to 03:00.
func TestStartChecksFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := nightly("h01")
		m.rollout = askedFirst()
		m.rollout.RetryAfter = "20m"
		well := false
		m.site = func(_ context.Context, task message.Task) message.Outcome { return task.Outcome(well, "one alarm") }
		c, _ := m.control(t)
		m.pass(2*time.Hour-time.Minute, "h01")
		for range 50 {
			m.pass(time.Minute, "h01")
			for _, task := range m.tasks() {
				m.tells("h01", task.Outcome(true, ""))
			}
			if hosts, err := c.Hosts(t.Context(), v1.HostFilter{}); err != nil || hosts[0].MissedSince != nil {
				t.Fatalf("at %s: %v, and h01 is shown as missed since %v, though no run has prepared it", time.Now().Format(time.TimeOnly), err, hosts[0].MissedSince)
			}
			well = well || len(m.openings()) == 2 && len(m.events(`"finished"`)) == 2
		}
		if got := m.openings(); !slices.Equal(got, []string{"02:00", "02:20", "02:40"}) || len(m.events(`"action":"prepare"`)) != 1 {
			t.Errorf("runs were opened at %v, and %d prepared", got, len(m.events(`"action":"prepare"`)))
		}
		runs, err := c.Runs(t.Context(), v1.RunFilter{})
		if err != nil || len(runs) != 3 || runs[1].Result != "failed" || runs[1].Reason != "start checks failed: site: one alarm" {
			t.Errorf("the runs are %+v, %v", runs, err)
		}
	})
}

// TestPresent checks what the checks of the site get to know of hosts.
func TestPresent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, _ := m.control(t)
		m.beat("h01")
		got, err := c.Present(t.Context(), defaultName)
		if want := []message.Present{{Name: "h01", Online: true}, {Name: "h02"}}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v", got, err)
		}
		if got, err := c.Present(t.Context(), "basel"); err != nil || len(got) != 0 {
			t.Errorf("of an environment that does not exist: %+v, %v", got, err)
		}
	})
}
