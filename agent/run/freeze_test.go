package run

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// freeze opens a run of one host whose rollout freezes changes, or does not.
func (s *site) freeze(environment, host string, freezes bool) {
	s.t.Helper()
	policy := rollout.Default(1)
	policy.FreezeChanges = freezes
	s.event(0, message.Opened{Environment: environment, Members: []string{host}, Rollout: policy, NotAfter: s.now.Add(4 * time.Hour)})
}

// TestFrozen: a run freezes changes from its first stage to its end, its environment and what is the
// tenant's, and never a change that only holds runs.
func TestFrozen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	expect := func(when string, tenant, basel, bern bool) {
		t.Helper()
		for _, row := range []struct {
			change Change
			frozen bool
		}{
			{Change{}, tenant},
			{Change{Environment: "basel"}, basel},
			{Change{Environment: "bern"}, bern},
			{Change{Holds: true}, false},
			{Change{Environment: "basel", Holds: true}, false},
		} {
			if err := s.ledger.Frozen(row.change); (err != nil) != row.frozen {
				t.Errorf("%s: %+v is refused with %v", when, row.change, err)
			}
		}
	}
	expect("without a run", false, false, false)
	s.freeze("basel", "b1", true)
	s.freeze("bern", "c1", false)
	expect("when it is open", false, false, false)
	basel, bern := s.prepare("basel", "b1"), s.prepare("bern", "c1")
	expect("when its hosts have prepared", false, false, false)
	s.upgrade(bern, "c1")
	expect("while another run upgrades, which freezes nothing", false, false, false)
	s.upgrade(basel, "b1")
	expect("from its first stage on", true, true, false)
	const told = "run 4 of environment basel freezes changes of the configuration until it ends, because its rollout has freeze-changes; " +
		"wait for its end, or end it: osupgrade-agent abort --environment basel --reason …; a freeze can be added, and runs can be paused"
	refused, is := errors.AsType[*Refused](s.ledger.Frozen(Change{}))
	if !is || refused.Run != basel || !refused.Frozen || strings.Replace(refused.Message, "run 3 ", "run 4 ", 1) != told {
		t.Errorf("the refusal is %+v", refused)
	}
	s.event(basel, message.Paused{By: "ann"})
	expect("while it is paused", true, true, false)
	s.event(basel, message.Finished{Result: "aborted"})
	expect("after its end", false, false, false)
}

// TestFrozen_alone: without environments the run of default freezes all, and no command names one.
func TestFrozen_alone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.freeze("", "h1", true)
	s.upgrade(s.prepare("", "h1"), "h1")
	for _, of := range []string{"", "default", "basel"} {
		err := s.ledger.Frozen(Change{Environment: of})
		if frozen := err != nil; frozen != (of != "basel") || frozen && !strings.Contains(err.Error(), "end it: osupgrade-agent abort --reason …;") {
			t.Errorf("a change of %q is refused with %v", of, err)
		}
	}
}
