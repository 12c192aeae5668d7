package image

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestSystems checks what a plan has come to on a host with more than one system.
func TestSystems(t *testing.T) {
	t.Parallel()
	plan := message.ChangeSet{Changes: []message.Change{{Name: "rootfs", From: "1", To: "2"}}}
	for name, c := range map[string]struct {
		now     Systems
		outcome strategy.Outcome
		resumed strategy.Outcome
		class   message.Class
		// missing is set before the reboot, lacks after it.
		missing, lacks bool
		verify         string
	}{
		"before":      {Systems{Running: "1"}, strategy.NotDone, strategy.NotDone, "", true, true, "rootfs is 1, not 2"},
		"starts next": {Systems{Running: "1", Next: "2"}, strategy.RebootRequired, strategy.RebootRequired, "", false, true, "rootfs is 1, not 2"},
		"another":     {Systems{Running: "1", Next: "3"}, strategy.NotDone, strategy.NotDone, "", true, true, "rootfs is 1, not 2"},
		"runs":        {Systems{Running: "2"}, strategy.Done, strategy.Done, "", false, false, ""},
		"failed":      {Systems{Running: "1", Failed: "2"}, strategy.NotDone, 0, message.Boot, true, true, "rootfs 2 did not start: the machine went back by itself to 1"},
		"back on it":  {Systems{Running: "2", Failed: "3"}, strategy.Done, strategy.Done, "", false, false, ""},
	} {
		c.now.Name = "rootfs"
		if got := c.now.Outcome(plan); got != c.outcome {
			t.Errorf("%s: outcome %d, not %d", name, got, c.outcome)
		}
		if got, err := c.now.Resumed(plan); got != c.resumed || strategy.ClassOf(err) != c.class {
			t.Errorf("%s: resumed %d, %v", name, got, err)
		}
		if got := c.now.Missing(strategy.Job{Plan: plan, Staged: true}); (len(got) > 0) != c.missing {
			t.Errorf("%s: before the reboot %v is missing", name, got)
		}
		if got := c.now.Missing(strategy.Job{Plan: plan}); (len(got) > 0) != c.lacks {
			t.Errorf("%s: after the reboot %v is missing", name, got)
		}
		if err := c.now.Verify(plan); (c.verify == "") != (err == nil) || err != nil && err.Error() != c.verify {
			t.Errorf("%s: verify %v", name, err)
		}
		if got := c.now.Outcome(message.ChangeSet{}); got != strategy.Done {
			t.Errorf("%s: an empty plan has the outcome %d", name, got)
		}
	}
}

// TestSystemsMissingOfARollback checks that the failed version is found where it starts next,
// though the version of before runs.
func TestSystemsMissingOfARollback(t *testing.T) {
	t.Parallel()
	back := message.ChangeSet{Changes: []message.Change{{Name: "rootfs", From: "2", To: "1"}}}
	for next, want := range map[string]int{"": 0, "1": 0, "2": 1} {
		now := Systems{Name: "rootfs", Running: "1", Next: next}
		if got := now.Missing(strategy.Job{Plan: back, Staged: true}); len(got) != want {
			t.Errorf("with %q as the next, %v is missing", next, got)
		}
		if got := now.Missing(strategy.Job{Plan: back}); len(got) != 0 {
			t.Errorf("of what runs, %v is missing", got)
		}
	}
	unnamed := Systems{Name: "rootfs", Running: "2", Unnamed: true}
	for _, c := range []struct {
		job  strategy.Job
		want int
	}{
		{strategy.Job{Plan: back, Staged: true, Reversed: true}, 0},
		{strategy.Job{Plan: back, Staged: true}, 1},
		{strategy.Job{Plan: back, Reversed: true}, 1},
	} {
		if got := unnamed.Missing(c.job); len(got) != c.want {
			t.Errorf("with a system from the factory next, %+v misses %v", c.job, got)
		}
	}
}

// TestSystemsPlan checks what a version changes.
func TestSystemsPlan(t *testing.T) {
	t.Parallel()
	now := Systems{Name: "rootfs", Running: "1"}
	plan := now.Plan("2", 100, "another slot", nil)
	if len(plan.Changes) != 1 || plan.Changes[0] != (message.Change{Name: "rootfs", From: "1", To: "2"}) || plan.Download != 100 || plan.Reboot != "another slot" || plan.Check() != nil {
		t.Errorf("a new version: %+v", plan)
	}
	if plan = now.Plan("1", 100, "another slot", nil); !plan.Empty() {
		t.Errorf("the version that runs: %+v", plan)
	}
	plan = now.Plan("2", 100, "another slot", message.Rejected{"rootfs": {"2"}})
	if len(plan.Changes) != 0 || len(plan.Held) != 1 || plan.Held[0].Offered != "2" || !strings.Contains(plan.Held[0].Reason, "rolled back") || plan.Download != 0 || plan.Reboot != "" || plan.Check() != nil {
		t.Errorf("a version that was rolled back: %+v", plan)
	}
}

// TestSystemsBack checks what undoes an upgrade from 1 to 2. A host may not know the version of
// the system from before.
func TestSystemsBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		now  Systems
		from string
		want WayBack
	}{
		"before":         {Systems{Running: "1"}, "1", Discard},
		"starts next":    {Systems{Running: "1", Next: "2"}, "1", Discard},
		"did not start":  {Systems{Running: "1", Failed: "2"}, "1", Discard},
		"another runs":   {Systems{Running: "3"}, "1", Discard},
		"runs":           {Systems{Running: "2"}, "1", Restore},
		"on its way":     {Systems{Running: "2", Next: "1"}, "1", UnderWay},
		"another next":   {Systems{Running: "2", Next: "3"}, "1", Restore},
		"unknown before": {Systems{Running: "2"}, "", Restore},
	} {
		if got := c.now.Back(message.Change{Name: "rootfs", From: c.from, To: "2"}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
