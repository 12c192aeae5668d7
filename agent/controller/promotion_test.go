package controller

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// promotes is a site whose rollout has a step, a canary, and a point of no return, with the releases
// spring and autumn.
func promotes(t *testing.T, act func(t *testing.T, m *memory, c *Controller)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.rollout = &v1.Rollout{Timeouts: &v1.CommandTimeouts{Prepare: "3h", Upgrade: "3h"}, Stages: []v1.Stage{
			{Name: "backup", Step: &v1.Step{Do: &v1.Hook{Type: "exec", Script: "backup", On: "site"}}},
			{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}},
			{Name: "rest", PointOfNoReturn: true},
		}}
		m.site = func(_ context.Context, task message.Task) message.Outcome { return task.Outcome(true, "") }
		c, _ := m.control(t)
		for name, version := range map[string]string{"spring": "2.0", "autumn": "3.0"} {
			m.releases(name, &v1.Release{Version: version, Scheme: release.Semver, Data: []byte(`{}`)})
		}
		m.beatReleases("h01", "h02", "h03")
		act(t, m, c)
	})
}

// goesTo starts a run to a release, and has hosts be upgraded in it that are prepared first.
func (m *memory) goesTo(t *testing.T, c *Controller, request v1.Start, hosts ...string) v1.Run {
	t.Helper()
	request.OverrideWindow, request.Reason = true, "test"
	r, err := c.Start(t.Context(), "test", request)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []message.Action{message.Prepare, message.Upgrade} {
		for _, host := range hosts {
			m.reply(host, r.ID, command)
		}
	}
	return r
}

// promotionText is what people see of the promotion of the tenant.
func promotionText(t *testing.T, c *Controller) string {
	t.Helper()
	state, err := c.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := state.Promotion
	if p == nil {
		return "none"
	}
	text := fmt.Sprintf("%s -> %s, runs %d to %d, %d of %d hosts, done %v, way back until %s", p.Was, p.Release, p.Since, p.Last, p.Hosts.Has, p.Hosts.Of, p.StepsDone, p.WayBack.Until)
	if p.WayBack.Closed != nil {
		text += ", closed"
	}
	return text
}

// releasesOf are the releases of the hosts, and those that they had before.
func releasesOf(t *testing.T, c *Controller) string {
	t.Helper()
	hosts, err := c.Hosts(t.Context(), v1.HostFilter{})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, h := range hosts {
		text += fmt.Sprintf("%s %s<%s; ", h.Hostname, h.Release, h.Was)
	}
	return text
}

// TestPromotion plays an environment that goes to a release over two runs, and then to another one: it
// shows at each moment how far it is, also after a restart, and each host which release it has and had.
func TestPromotion(t *testing.T) {
	t.Parallel()
	promotes(t, func(t *testing.T, m *memory, c *Controller) {
		shows := func(when, promotion, hosts string) {
			t.Helper()
			if got := promotionText(t, c); got != promotion {
				t.Errorf("%s: %s, want %s", when, got, promotion)
			}
			if got := releasesOf(t, c); got != hosts {
				t.Errorf("%s: %s, want %s", when, got, hosts)
			}
		}
		shows("before the first run", "none", "h01 <; h02 <; h03 <; ")

		first := m.goesTo(t, c, v1.Start{Release: "spring", Until: "canary"}, "h01")
		spring1 := fmt.Sprintf(" -> spring, runs %d to %d, 1 of 3 hosts, done [backup], way back until rest", first.ID, first.ID)
		shows("after the canary", spring1, "h01 spring<; h02 <; h03 <; ")
		c = m.restart(t)
		m.beatReleases("h01", "h02", "h03")
		shows("after a restart", spring1, "h01 spring<; h02 <; h03 <; ")

		second := m.goesTo(t, c, v1.Start{Release: "spring"}, "h02", "h03")
		spring3 := fmt.Sprintf(" -> spring, runs %d to %d, 3 of 3 hosts, done [backup], way back until rest, closed", first.ID, second.ID)
		shows("after the rest", spring3, "h01 spring<; h02 spring<; h03 spring<; ")

		if f, err := c.Figures(t.Context()); err != nil || len(f.Releases) != 1 || f.Releases[0] != (ReleaseFigures{Release: "spring", Hosts: 3}) {
			t.Errorf("the figures are %+v, %v", f.Releases, err)
		}

		m.goesTo(t, c, v1.Start{Release: "autumn", Hosts: []string{"h03"}}, "h03")
		shows("after a trial on one host", fmt.Sprintf(" -> spring, runs %d to %d, 2 of 3 hosts, done [backup], way back until rest, closed", first.ID, second.ID),
			"h01 spring<; h02 spring<; h03 autumn<spring; ")

		r, err := c.Start(t.Context(), "test", v1.Start{Release: "autumn", OverrideWindow: true, Reason: "test"})
		if err != nil {
			t.Fatal(err)
		}
		m.reply("h01", r.ID, message.Prepare)
		m.reply("h02", r.ID, message.Prepare)
		m.reply("h03", r.ID, message.Prepare)
		m.reply("h01", r.ID, message.Upgrade)
		shows("in the middle of a run", fmt.Sprintf("spring -> autumn, runs %d to %d, 2 of 3 hosts, done [backup], way back until rest, closed", r.ID, r.ID),
			"h01 autumn<spring; h02 spring<; h03 autumn<spring; ")
		m.reply("h02", r.ID, message.Upgrade)
		m.reply("h03", r.ID, message.Upgrade)
		m.goesTo(t, c, v1.Start{Release: "spring", Hosts: []string{"h01"}}, "h01")
		c = m.restart(t)
		shows("after a run of one host, and a restart", fmt.Sprintf("spring -> autumn, runs %d to %d, 2 of 3 hosts, done [backup], way back until rest, closed", r.ID, r.ID),
			"h01 spring<autumn; h02 autumn<spring; h03 autumn<spring; ")
	})
}

// TestFailedHostGoesBack checks that a host that failed in a run to a release still has, once the run is rolled
// back, the release that it had before.
func TestFailedHostGoesBack(t *testing.T) {
	t.Parallel()
	promotes(t, func(t *testing.T, m *memory, c *Controller) {
		m.beatRollbacks("h01", "h02", "h03")
		m.goesTo(t, c, v1.Start{Release: "spring"}, "h01", "h02", "h03")
		autumn := m.goesTo(t, c, v1.Start{Release: "autumn", Until: "canary"})
		m.reply("h01", autumn.ID, message.Prepare)
		m.answer("h01", autumn, message.Upgrade, message.Failed)
		if got := found(t, c, autumn.ID); got.Result != "failed" {
			t.Fatalf("the run is %s", got.Result)
		}
		back := m.goesTo(t, c, v1.Start{Release: "spring"}, "h01")
		if got := found(t, c, back.ID); got.RollbackOf != autumn.ID || got.Result != "completed" {
			t.Fatalf("the run rolls back %d, and is %s: %s", got.RollbackOf, got.Result, got.Reason)
		}
		if got, want := releasesOf(t, c), "h01 spring<; h02 spring<; h03 spring<; "; got != want {
			t.Errorf("the hosts have %s, want %s", got, want)
		}
	})
}

// TestNoPromotion checks that nothing of it is on the log or shown while no run has a release.
func TestNoPromotion(t *testing.T) {
	t.Parallel()
	promotes(t, func(t *testing.T, m *memory, c *Controller) {
		m.goesTo(t, c, v1.Start{}, "h01", "h02", "h03")
		m.goesTo(t, c, v1.Start{}, "h01", "h02", "h03")
		if len(m.events("promotion")) != 0 || promotionText(t, c) != "none" {
			t.Errorf("the log has %s", m.events("promotion"))
		}
	})
}

// TestGoesBackByName checks that a start to the release from before rolls back the runs to the present
// one, and that a person can start a run to that again.
func TestGoesBackByName(t *testing.T) {
	t.Parallel()
	promotes(t, func(t *testing.T, m *memory, c *Controller) {
		m.beatRollbacks("h01", "h02", "h03")
		m.goesTo(t, c, v1.Start{Release: "spring"}, "h01", "h02", "h03")
		second := m.goesTo(t, c, v1.Start{Release: "autumn", Until: "canary"}, "h01")
		back := m.goesTo(t, c, v1.Start{Release: "spring"}, "h01")
		if r := found(t, c, back.ID); r.RollbackOf != second.ID || r.Release != nil || r.Result != "completed" {
			t.Fatalf("the run rolls back run %d and has release %+v; it is %s", r.RollbackOf, r.Release, r.Result)
		}
		if got, want := releasesOf(t, c), "h01 spring<autumn; h02 spring<; h03 spring<; "; got != want {
			t.Errorf("the hosts have %s, want %s", got, want)
		}
		state, err := c.State(t.Context())
		if err != nil || state.Promotion.Release != "autumn" || state.Promotion.RolledBack == nil || state.Promotion.RolledBack.Run != back.ID || state.Promotion.RolledBack.Reason != "test" {
			t.Fatalf("the promotion is %+v, %v", state.Promotion, err)
		}

		if r := m.goesTo(t, c, v1.Start{Release: "autumn"}, "h01", "h02", "h03"); r.Release == nil || r.Release.Name != "autumn" {
			t.Errorf("the run by hand goes to %+v", r.Release)
		}
	})
}
