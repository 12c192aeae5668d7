package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// shopRuns is a site with the runs of two environments, which are under way, and a host of default.
func shopRuns(t *testing.T, act func(t *testing.T, m *shops, c *Controller, berlin, lisbon v1.Run)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "berlin", "l1": "lisbon", "d1": ""})
		c, _ := m.control(t)
		m.beat()
		for _, city := range []string{"berlin", "lisbon"} {
			e := inShop(city, "UTC")
			m.declareShop(city, &e)
		}
		time.Sleep(gracePeriod)
		m.beat()
		var runs []v1.Run
		for _, city := range []string{"berlin", "lisbon"} {
			r, err := c.Start(t.Context(), "test", startIn(city))
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, r)
		}
		act(t, m, c, runs[0], runs[1])
	})
}

// TestRequestsNameTheirRun checks what a request comes to that names an environment, names none while
// several runs are under way, or names one that there is not.
func TestRequestsNameTheirRun(t *testing.T) {
	t.Parallel()
	shopRuns(t, func(t *testing.T, _ *shops, c *Controller, berlin, lisbon v1.Run) {
		_, err := c.Ask(t.Context(), "test", run.Abort, v1.Ask{Reason: "which one?", Now: true})
		which, ambiguous := errors.AsType[*run.Ambiguous](err)
		if !ambiguous {
			t.Fatalf("an abort that names no run is answered %v", err)
		}
		want := []v1.Choice{
			{Environment: "berlin", Run: berlin.ID, Command: "osupgrade-agent abort --now --environment berlin --reason …"},
			{Environment: "lisbon", Run: lisbon.ID, Command: "osupgrade-agent abort --now --environment lisbon --reason …"},
		}
		message := fmt.Sprintf("several runs are in progress: run %d of berlin, run %d of lisbon; say which you mean: %s, %s, or to abort all of them: osupgrade-agent abort --now --all --reason …",
			berlin.ID, lisbon.ID, want[0].Command, want[1].Command)
		if !reflect.DeepEqual(which.Choices, want) || which.Message != message {
			t.Errorf("an abort that names no run is answered\n%s\n%+v; want\n%s\n%+v", which.Message, which.Choices, message, want)
		}
		_, err = c.Ask(t.Context(), "test", run.Pause, v1.Ask{Reason: "a typo", Environment: "berlim"})
		if nowhere, is := errors.AsType[*run.NoEnvironment](err); !is || nowhere.Error() != "there is no environment berlim; there are: berlin, default, lisbon" {
			t.Errorf("a pause of an environment that there is not is answered %v", err)
		}
		if r, err := c.Ask(t.Context(), "test", run.Pause, v1.Ask{Reason: "a test", Environment: "lisbon"}); err != nil || r.ID != lisbon.ID || r.Paused == "" {
			t.Errorf("a pause of lisbon is answered %+v, %v", r, err)
		}
		_, err = c.Ask(t.Context(), "test", run.Pause, v1.Ask{Reason: "a test", Environment: "lisbon"})
		if err == nil || !strings.HasSuffix(err.Error(), "to have it proceed: osupgrade-agent resume --environment lisbon --reason …") {
			t.Errorf("a second pause of lisbon is answered %v", err)
		}
		_, err = c.Ask(t.Context(), "test", run.Abort, v1.Ask{Reason: "a test", Environment: "default"})
		if err == nil || err.Error() != "no run is in progress; to start one: osupgrade-agent start --override-window --environment default --reason …" {
			t.Errorf("an abort of default, which has had no run, is answered %v", err)
		}
		if r, err := c.Ask(t.Context(), "test", run.Release, v1.Ask{Reason: "a test", Host: "l1"}); err != nil || r.ID != lisbon.ID {
			t.Errorf("a release of a host of lisbon is answered %+v, %v", r, err)
		}
		if r, err := c.Ask(t.Context(), "test", run.Abort, v1.Ask{Reason: "a test", Environment: "berlin", Now: true}); err != nil || r.ID != berlin.ID || !r.Finished() {
			t.Errorf("an abort of berlin is answered %+v, %v", r, err)
		}
	})
}

// TestAbortAll checks that all runs are aborted, that whoever repeats it changes nothing, and that
// those that cannot be aborted are named.
func TestAbortAll(t *testing.T) {
	t.Parallel()
	shopRuns(t, func(t *testing.T, m *shops, c *Controller, berlin, lisbon v1.Run) {
		m.reply("b1", berlin.ID, message.Prepare)
		m.reply("l1", lisbon.ID, message.Prepare)
		again := func(ctx context.Context, body v1.Ask) string {
			runs, err := c.AbortAll(ctx, "test", body)
			if err != nil {
				return err.Error()
			}
			var got []string
			for _, r := range runs {
				got = append(got, fmt.Sprint(r.Environment, " ", r.ID, " ", r.Aborted, " ", r.Result, " ", len(r.Hosts)))
			}
			return strings.Join(got, ", ")
		}
		want := fmt.Sprintf("berlin %d by test: a test  0, lisbon %d by test: a test  0", berlin.ID, lisbon.ID)
		for _, try := range []string{"first", "second"} {
			if got := again(t.Context(), v1.Ask{Reason: "a test"}); got != want {
				t.Errorf("the %s abort of all is answered %q; want %q", try, got, want)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if got := again(gone, v1.Ask{Reason: "a test"}); got != context.Canceled.Error() {
			t.Errorf("an abort of all that nobody waits for is answered %q", got)
		}
		want = fmt.Sprintf("berlin %d  aborted 0, lisbon %d  aborted 0", berlin.ID, lisbon.ID)
		if got := again(t.Context(), v1.Ask{Reason: "a test", Now: true}); got != want {
			t.Errorf("the abort of all at once is answered %q; want %q", got, want)
		}
		if got := again(t.Context(), v1.Ask{Reason: "a test"}); got != "" {
			t.Errorf("the abort of all while no run is in progress is answered %q", got)
		}
		_, err := c.Ask(t.Context(), "test", run.Abort, v1.Ask{Reason: "a test"})
		if err == nil || err.Error() != "no run is in progress in any environment; to start one: osupgrade-agent start --override-window --environment NAME --reason …" {
			t.Errorf("an abort while no run is in progress is answered %v", err)
		}
	})
}

// TestStartsChooseTheirEnvironment checks in which environment a start opens a run that names one, or
// none.
func TestStartsChooseTheirEnvironment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "berlin", "b2": "berlin", "l1": "lisbon"})
		c, _ := m.control(t)
		m.beat()
		for _, city := range []string{"berlin", "lisbon", "madrid"} {
			e := inShop(city, "UTC")
			m.declareShop(city, &e)
		}
		time.Sleep(gracePeriod)
		m.beat()
		by := func(change func(*v1.Start)) v1.Start {
			of := start
			change(&of)
			return of
		}
		command := func(city string) string {
			return "osupgrade-agent start --environment " + city + " --override-window --reason …"
		}
		for _, row := range []struct {
			name, refused string
			request       v1.Start
		}{
			{"none, and two have hosts", "a run is of one environment, and several have hosts to upgrade: berlin with 2 hosts, lisbon with 1 host; say which you mean: " + command("berlin") + ", " + command("lisbon"), start},
			{"an unknown one", "there is no environment rome; there are: berlin, default, lisbon, madrid", startIn("rome")},
			{"one without hosts", "no host of a listed worker application is known; start a worker under one of worker-applications first", startIn("madrid")},
			{"a host of another", "host l1 is in environment lisbon, not in berlin; a run is of one environment", by(func(s *v1.Start) { s.Environment, s.Hosts = "berlin", []string{"l1"} })},
			{"a host that is not known", "host x1 is not known under a listed worker application; osupgrade-agent hosts lists those that are", by(func(s *v1.Start) { s.Hosts = []string{"x1"} })},
			{"outside of its windows", "no maintenance window is open; the next one opens at 2000-01-01T02:00:00Z; to start now: osupgrade-agent start --environment lisbon --host l1 --override-window --reason …", v1.Start{Hosts: []string{"l1"}}},
		} {
			if _, err := c.Start(t.Context(), "test", row.request); err == nil || err.Error() != row.refused {
				t.Errorf("%s: the start is answered %v; want %s", row.name, err, row.refused)
			}
		}
		_, err := c.Preflight(t.Context(), "test", v1.Start{})
		if which, is := errors.AsType[*run.Ambiguous](err); !is || len(which.Choices) != 2 || which.Choices[1].Command != "osupgrade-agent start --environment lisbon --dry-run" {
			t.Errorf("a rehearsal that names no environment is answered %v", err)
		}
		_, err = c.Health(t.Context(), v1.AskHealth{})
		if which, is := errors.AsType[*run.Ambiguous](err); !is || len(which.Choices) != 2 || which.Choices[1].Command != "osupgrade-agent health --environment lisbon" {
			t.Errorf("who asks for the health and names no environment is answered %v", err)
		}
		if p, err := c.Preflight(t.Context(), "test", startIn("lisbon")); err != nil || p.Run == nil || p.Run.Environment != "lisbon" || len(p.Run.Hosts) != 1 {
			t.Errorf("a rehearsal of lisbon is answered %+v, %v", p, err)
		}
		one := by(func(s *v1.Start) { s.Hosts, s.RequestID = []string{"l1"}, "once" })
		r, err := c.Start(t.Context(), "test", one)
		if err != nil || r.Environment != "lisbon" {
			t.Fatalf("a start of a host of lisbon is answered %+v, %v", r, err)
		}
		if again, err := c.Start(t.Context(), "test", one); err != nil || again.ID != r.ID {
			t.Errorf("the same start again is answered %+v, %v", again, err)
		}
		_, err = c.Start(t.Context(), "test", startIn("lisbon"))
		if err == nil || !strings.HasSuffix(err.Error(), "to end it: osupgrade-agent abort --environment lisbon --reason …") {
			t.Errorf("a start in lisbon while its run is in progress is answered %v", err)
		}
		if _, err := c.Ask(t.Context(), "test", run.Abort, v1.Ask{Reason: "a test", Now: true}); err != nil {
			t.Fatal(err)
		}
		again, err := c.Start(t.Context(), "test", by(func(s *v1.Start) { s.RetryOf = r.ID }))
		if err != nil || again.Environment != "lisbon" || again.RetryOf != r.ID {
			t.Errorf("a retry of the run of lisbon is answered %+v, %v", again, err)
		}
	})
}

// TestChoicesAreBounded checks that an answer does not grow with the number of environments.
func TestChoicesAreBounded(t *testing.T) {
	t.Parallel()
	found := ambiguity{}
	for i := range 1000 {
		found.add(v1.Choice{Environment: fmt.Sprintf("e%03d", i)}, "e%03d", i)
	}
	which, is := errors.AsType[*run.Ambiguous](found.of("%s: %s"))
	if !is || len(which.Choices) != mostChoices || which.Choices[mostChoices-1].Environment != "e019" {
		t.Errorf("there are %d choices", len(which.Choices))
	}
}

// TestRetryOfMovedHosts checks that a retry of hosts that somebody has moved says where they are.
func TestRetryOfMovedHosts(t *testing.T) {
	t.Parallel()
	shopRuns(t, func(t *testing.T, m *shops, c *Controller, berlin, _ v1.Run) {
		if _, err := c.Ask(t.Context(), "test", run.Abort, v1.Ask{Reason: "a test", Now: true, Environment: "berlin"}); err != nil {
			t.Fatal(err)
		}
		m.pass(time.Minute)
		for _, h := range berlin.Hosts {
			if _, err := c.Move(t.Context(), h.Hostname, "lisbon"); err != nil {
				t.Fatal(err)
			}
		}
		_, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "again", RetryOf: berlin.ID})
		first := berlin.Hosts[0].Hostname
		want := fmt.Sprintf("that run %d left is in environment berlin any more: %s is in environment lisbon; to start a run of it: osupgrade-agent start --environment lisbon --host %s --override-window --reason …", berlin.ID, first, first)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("the retry is answered %v; want %s", err, want)
		}
	})
}
