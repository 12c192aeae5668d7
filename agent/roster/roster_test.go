package roster_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/roster"
)

// TestOutOfService plays anything that can happen to hosts, in any order, and
// holds that a host is out of service exactly while something keeps it so, that
// it then has a reason and a time, and that each group is counted right.
func TestOutOfService(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	rapid.Check(t, func(rt *rapid.T) {
		r := roster.New(2, 0)
		for i := range 6 {
			r.Add(fmt.Sprintf("h%d", i), i%3+roster.NoGroup)
		}
		for n := range rapid.IntRange(0, 40).Draw(rt, "changes") {
			now := start.Add(time.Duration(n) * time.Minute)
			change := rapid.SampledFrom(changes(now)).Draw(rt, "change")
			r.Edit(rapid.IntRange(0, 5).Draw(rt, "host"), now, change)
			if rapid.IntRange(0, 9).Draw(rt, "clock") == 0 {
				r.Earlier(start)
			}
			out := map[int]int{}
			for _, h := range r.From(0) {
				kept := h.InHand || h.Owes != (message.Debt{}) || !h.Silent.IsZero()
				if h.Out() != kept || (h.Reason() != "") != kept || h.OutSince().IsZero() == kept {
					rt.Fatalf("out of service: %t, because %q since %s: %+v", h.Out(), h.Reason(), h.OutSince(), *h)
				}
				if kept {
					out[h.Group]++
				}
			}
			for group := range 2 {
				if r.Out(group) != out[group] {
					rt.Fatalf("%d hosts of group %d are counted as out of service, and %d are", r.Out(group), group, out[group])
				}
			}
		}
	})
}

// changes are what can happen to a host.
func changes(now time.Time) []func(*roster.Host) {
	return []func(*roster.Host){
		func(h *roster.Host) { h.InHand, h.Before = true, false },
		func(h *roster.Host) { h.InHand = false },
		func(h *roster.Host) { h.Owes.Answer = message.Upgrade },
		func(h *roster.Host) { h.Owes.Undrain = true },
		func(h *roster.Host) { h.Owes.Checks = message.AfterHost },
		func(h *roster.Host) { h.Owes.Undrain, h.Owes.Checks = false, "" },
		func(h *roster.Host) { h.Answered(false) },
		func(h *roster.Host) { h.Answered(true) },
		func(h *roster.Host) {
			h.Since, h.Before, h.Owes = now.Add(-time.Hour), true, message.Debt{Answer: message.Reboot}
		},
		func(h *roster.Host) { h.Silent = now },
		func(h *roster.Host) { h.Silent = time.Time{} },
		(*roster.Host).Remove,
	}
}

// TestReason checks why a host is out of service, of several reasons the first.
func TestReason(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	for want, h := range map[string]roster.Host{
		"":                         {},
		"nobody knows what it did": {Before: true, Owes: message.Debt{Look: true, Undrain: true}},
		"it has not answered reboot of an earlier run":                {Before: true, Silent: now, Owes: message.Debt{Answer: message.Reboot}},
		"it was unhealthy when the previous run ended":                {Before: true, Owes: message.Debt{Checks: message.AfterHost}},
		"it was unhealthy when the previous run ended, and is silent": {Before: true, Silent: now, Owes: message.Debt{Undrain: true}},
		"it has not answered upgrade":                                 {Owes: message.Debt{Answer: message.Upgrade, Undrain: true}},
		"it is being upgraded":                                        {InHand: true, Owes: message.Debt{Undrain: true}},
		"it is not undrained":                                         {Owes: message.Debt{Undrain: true, Checks: message.AfterHost}},
		"it failed and is still unhealthy":                            {Silent: now, Owes: message.Debt{Checks: message.AfterHost}},
		"it is silent":                                                {Silent: now},
	} {
		if got := h.Reason(); got != want {
			t.Errorf("%+v is out of service because %q, not %q", h, got, want)
		}
	}
}
