package run

import (
	"slices"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestCandidates has a host that owes something go first, and a host that was silent
// regain its position.
func TestCandidates(t *testing.T) {
	t.Parallel()
	all, opened := make(members, 4), message.Opened{Members: []string{"h01", "h02", "h03", "h04"}, Rollout: rollout.Default(4)}
	hosts := roster.Open(opened, epoch)
	for i := range all {
		all[i] = member{Host: hosts.Host(i), phase: idle, hash: uint64(9 - i)}
	}
	hosts.Fail(2, message.AfterHost, epoch)
	c := newCandidates(all, 0, len(all), true, 1)
	if want := []int{2, 3, 1, 0}; !slices.Equal(c.order, want) {
		t.Fatalf("order %v, want %v", c.order, want)
	}
	check := func(what string, queue, want int) {
		t.Helper()
		if i, some := firstOf(c, queue); !some || i != want {
			t.Errorf("%s: first is host %d, %v; want host %d", what, i, some, want)
		}
	}
	for i := range all {
		c.update(all, i)
	}
	check("the host that has a slot", hasSlot, 2)
	check("the host of the smallest hash", needsSlot, 3)
	hosts.FellSilent(3, epoch)
	c.update(all, 3)
	check("the first host is silent", needsSlot, 1)
	other := c.clone()
	hosts.Recover(3, epoch)
	c.update(all, 3)
	check("the first host is heard of again", needsSlot, 3)
	if i, _ := firstOf(other, needsSlot); i != 1 {
		t.Errorf("a clone has changed with its original: first is host %d", i)
	}
	hosts.Pass(2, message.AfterHost, epoch)
	c.update(all, 2)
	check("the host that owes nothing any more", needsSlot, 2)
	if i, some := firstOf(c, hasSlot); some {
		t.Errorf("host %d has a slot and owes nothing", i)
	}
}

// firstOf returns the first host of a queue.
func firstOf(c candidates, queue int) (int, bool) {
	if queue == hasSlot {
		return c.firstHeld()
	}
	return c.firstUnheld(nil)
}
