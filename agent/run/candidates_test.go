package run

import (
	"slices"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/roster"
)

// TestCandidates has a host that owes something go first, and a host that was silent
// regain its position.
func TestCandidates(t *testing.T) {
	t.Parallel()
	all := make(members, 4)
	for i := range all {
		all[i] = member{Host: &roster.Host{}, step: idle, hash: uint64(9 - i)}
	}
	all[2].Owes = message.Debt{Checks: message.AfterHost}
	c := newCandidates(all, 0, len(all), true)
	if want := []int{2, 3, 1, 0}; !slices.Equal(c.order, want) {
		t.Fatalf("order %v, want %v", c.order, want)
	}
	check := func(what string, queue, want int) {
		t.Helper()
		if i, some := c.first(queue); !some || i != want {
			t.Errorf("%s: first is host %d, %v; want host %d", what, i, some, want)
		}
	}
	for i := range all {
		c.update(all, i)
	}
	check("the host that has a slot", hasSlot, 2)
	check("the host of the smallest hash", needsSlot, 3)
	all[3].Silent = epoch
	c.update(all, 3)
	check("the first host is silent", needsSlot, 1)
	other := c.clone()
	all[3].Silent = time.Time{}
	c.update(all, 3)
	check("the first host is heard of again", needsSlot, 3)
	if i, _ := other.first(needsSlot); i != 1 {
		t.Errorf("a clone has changed with its original: first is host %d", i)
	}
	all[2].Owes = message.Debt{}
	c.update(all, 2)
	check("the host that owes nothing any more", needsSlot, 2)
	if i, some := c.first(hasSlot); some {
		t.Errorf("host %d has a slot and owes nothing", i)
	}
}
