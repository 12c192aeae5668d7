package roster

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

var epoch = time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)

// opened opens a run of two stages of two hosts each, of which one may be out of service,
// with two hosts that are no members, one of them in the second stage.
func opened(entries ...message.Entry) message.Opened {
	p := rollout.Default(2)
	second := p.Stages[0]
	second.Name = "second"
	p.Stages = append(p.Stages, second)
	p.Checks = &rollout.Checks{AfterHost: []rollout.Check{{Name: "c"}}}
	p.Hooks = &rollout.Hooks{Undrain: &rollout.Hook{Type: rollout.Exec}}
	e := message.Opened{Members: []string{"h0", "h1", "h2", "h3"}, Rollout: p}
	e.Roster = append([]message.Entry{{Host: "aside", Stage: "second"}, {Host: "beyond", Since: epoch, Owes: message.Debt{Look: true}}}, entries...)
	return e
}

// TestOutOfService plays anything that can happen to hosts, in any order, and
// holds that a host is out of service exactly while something keeps it so, that
// it then has a reason and a time, that each group is counted right, and that the next
// run is opened with what lasts.
func TestOutOfService(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := Open(opened(), epoch)
		for n := range rapid.IntRange(0, 40).Draw(rt, "records") {
			now := epoch.Add(time.Duration(n) * time.Minute)
			what := rapid.SampledFrom(slices.Sorted(maps.Keys(happens(r)))).Draw(rt, "what")
			happens(r)[what](rapid.IntRange(0, len(r.From(0))-1).Draw(rt, "host"), now)
			if rapid.IntRange(0, 9).Draw(rt, "clock") == 0 {
				r.SetBack(epoch)
			}
			holds(rt, r)
		}
		for i := range r.From(0) {
			r.LetGo(i, epoch)
		}
		r.Finish()
		next := opened()
		next.Roster = r.Opening(nil, nil)
		again := Open(next, epoch.Add(time.Hour))
		for i, h := range r.From(0) {
			j, known := again.Index(h.Name)
			if lasts := known && again.CountsAsOut(j); lasts != r.CountsAsOut(i) {
				rt.Fatalf("%s counts as out of service: %t, and in the next run: %t: %+v", h.Name, !lasts, lasts, *h)
			}
		}
	})
}

// holds holds what is true of each roster.
func holds(rt *rapid.T, r *Roster) {
	out := map[int]int{}
	for i, h := range r.From(0) {
		kept := h.inHand || h.owes != (message.Debt{}) || !h.silent.IsZero()
		if h.Out() != kept || (h.Reason() != "") != kept || h.OutSince().IsZero() == kept {
			rt.Fatalf("out of service: %t, because %q since %s: %+v", h.Out(), h.Reason(), h.OutSince(), *h)
		}
		if kept {
			out[h.Group]++
		}
		if free := h.Group == NoGroup || r.Free(h.Group) > 0; r.MayLeave(i) != (h.HasSlot() || free) {
			rt.Fatalf("%s may leave service: %t, and its group has room: %t: %+v", h.Name, r.MayLeave(i), free, *h)
		}
	}
	for group := range 2 {
		if r.Out(group) != out[group] || r.Free(group) != 1-out[group] {
			rt.Fatalf("%d hosts of group %d are counted as out of service, %d may leave, and %d are", r.Out(group), group, r.Free(group), out[group])
		}
	}
}

// happens is what can happen to a host.
func happens(r *Roster) map[string]func(i int, now time.Time) {
	return map[string]func(int, time.Time){
		"falls silent": func(i int, now time.Time) {
			if r.HeedsSilence(i) {
				r.FellSilent(i, now)
			}
		},
		"recovers":            r.Recover,
		"is removed":          r.Remove,
		"is admitted":         r.Admit,
		"is taken":            r.Take,
		"is drained":          r.Drain,
		"is let go":           r.LetGo,
		"is awaited":          func(i int, now time.Time) { r.Await(i, message.Upgrade, now) },
		"answers":             func(i int, now time.Time) { r.Answer(i, false, now) },
		"does not know":       func(i int, now time.Time) { r.Answer(i, true, now) },
		"fails":               func(i int, now time.Time) { r.Fail(i, message.AfterHost, now) },
		"fails and owes none": func(i int, now time.Time) { r.Fail(i, "", now) },
		"passes":              func(i int, now time.Time) { r.Pass(i, message.AfterHost, now) },
		"is undrained":        func(i int, now time.Time) { r.Pass(i, message.Undrain, now) },
		"returns":             r.Return,
	}
}

// TestReason checks why a host is out of service, of several reasons the first.
func TestReason(t *testing.T) {
	t.Parallel()
	for want, h := range map[string]Host{
		"":                         {},
		"nobody knows what it did": {before: true, owes: message.Debt{Look: true, Undrain: true}},
		"it has not answered reboot of an earlier run":                {before: true, silent: epoch, owes: message.Debt{Answer: message.Reboot}},
		"it has not answered upgrade of an earlier run":               {before: true, failed: true, owes: message.Debt{Answer: message.Upgrade}},
		"it was unhealthy when the previous run ended":                {before: true, owes: message.Debt{Checks: message.AfterHost}},
		"it was unhealthy when the previous run ended, and is silent": {before: true, silent: epoch, owes: message.Debt{Undrain: true}},
		"it has not answered upgrade":                                 {owes: message.Debt{Answer: message.Upgrade, Undrain: true}},
		"it is being upgraded":                                        {inHand: true, owes: message.Debt{Undrain: true}},
		"it is not undrained":                                         {owes: message.Debt{Undrain: true, Checks: message.AfterHost}},
		"it failed and is still unhealthy":                            {before: true, failed: true, silent: epoch, owes: message.Debt{Checks: message.AfterHost}},
		"it is silent":                                                {silent: epoch},
	} {
		if got := h.Reason(); got != want {
			t.Errorf("%+v is out of service because %q, not %q", h, got, want)
		}
	}
}

// TestServices checks what a roster answers who asks which hosts are out of service, and
// which may leave, while a run is under way and after its end.
func TestServices(t *testing.T) {
	t.Parallel()
	r := Open(opened(message.Entry{Host: "h1", Silent: true}, message.Entry{Host: "h3", Silent: true, Since: epoch}), epoch)
	r.Take(0, epoch)
	check := func(when string, want map[string]Service, free ...int) {
		t.Helper()
		if got := r.OutOfService(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
		if r.Free(0) != free[0] || r.Free(1) != free[1] {
			t.Errorf("%s: %d and %d hosts may leave, want %v", when, r.Free(0), r.Free(1), free)
		}
	}
	absent := map[string]Service{"beyond": Unhealthy, "h0": BeingUpgraded, "h3": FellSilent}
	check("in progress", absent, 0, 0)
	if i, _ := r.Index("h2"); r.MayLeave(i) {
		t.Error("h2 may leave, and h3 is silent")
	}
	r.Fail(0, message.AfterHost, epoch)
	r.Finish()
	absent["h0"] = Unhealthy
	check("after the end", absent, 0, 0)
	r.Pass(0, message.AfterHost, epoch)
	r.Recover(3, epoch)
	check("later", map[string]Service{"beyond": Unhealthy}, 1, 1)
	if got := new(Roster).OutOfService(); len(got) != 0 {
		t.Errorf("before the first run %v are out of service", got)
	}
}

// TestTake checks what the next run of a host is told that comes from another roster: what it
// owes and may be at work on, and its silence only while it lasts.
func TestTake(t *testing.T) {
	t.Parallel()
	r := Open(opened(), epoch)
	silent, _ := r.Index("h1")
	r.Await(silent, message.Upgrade, epoch)
	r.Release(silent, "", epoch)
	r.change(silent, epoch, func(h *Host) { h.silent = epoch })
	owing, _ := r.Index("beyond")
	for name, c := range map[string]struct {
		host   string
		listed []message.Entry
		want   message.Entry
	}{
		"at work, and silent still":            {"h1", []message.Entry{{Host: "h1", Silent: true}}, message.Entry{Host: "h1", Silent: true, Since: epoch, Works: message.Upgrade}},
		"at work, and heard of":                {"h1", []message.Entry{{Host: "h1", Stage: "s"}}, message.Entry{Host: "h1", Stage: "s", Works: message.Upgrade}},
		"at work, and nothing else is known":   {"h1", nil, message.Entry{Host: "h1", Silent: true, Since: epoch, Works: message.Upgrade}},
		"it owes something, and is told of so": {"beyond", []message.Entry{{Host: "beyond", Stage: "s"}}, message.Entry{Host: "beyond", Stage: "s", Since: epoch, Owes: message.Debt{Look: true}}},
	} {
		brought, some := r.Entry(c.host)
		if got := Take(c.listed, brought); !some || len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: the run is opened with %+v, want %+v", name, got, c.want)
		}
	}
	if _, some := r.Entry("h3"); some {
		t.Error("h3 brings something, and is well")
	}
	r.Leave(owing, epoch)
	if _, some := r.Entry("beyond"); some || !r.Host(owing).HasMoved() || !r.Host(owing).IsRemoved() {
		t.Errorf("beyond has moved, and is still here: %+v", *r.Host(owing))
	}
}

// TestAbsent checks that the silence of a host that was absent counts with the rollout's
// word for it, and not beyond the run.
func TestAbsent(t *testing.T) {
	t.Parallel()
	e := opened(message.Entry{Host: "h1", Silent: true})
	e.Rollout.Absent = rollout.CountAbsent
	r := Open(e, epoch)
	if got := r.OutOfService()["h1"]; got != Absent || r.Free(0) != 0 {
		t.Errorf("h1 is %q, and %d may leave its stage", got, r.Free(0))
	}
	r.Finish()
	if got, counts := r.OutOfService()["h1"]; counts || len(r.Opening(nil, nil)) != 1 {
		t.Errorf("after the end h1 is %q, and the next run is opened with %v", got, r.Opening(nil, nil))
	}
}
