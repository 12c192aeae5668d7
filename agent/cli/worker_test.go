package cli

import (
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/exec"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/worker"
)

// TestLimits checks what becomes of --action-limit: a script that only looks at
// the host has no more than its own limit, and the worker does not call an action
// overdue whose script may wait for an earlier one and then run.
func TestLimits(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for limit, want := range map[time.Duration]exec.Timeouts{
		10 * time.Second: {Versions: 10 * time.Second, Verify: 10 * time.Second},
		5 * time.Minute:  {Versions: time.Minute, Verify: 5 * time.Minute},
		day:              {Versions: time.Minute, Verify: 10 * time.Minute},
	} {
		want.Booted, want.Plan, want.Missing, want.Confirm = want.Versions, want.Verify, want.Verify, want.Verify
		want.Prepare, want.Upgrade, want.Resume, want.Rollback = limit, limit, limit, limit
		c := workerCommand{ActionLimit: length(limit), RebootLimit: length(7 * time.Second)}
		if got := exec.WithLimit(limit); got != want {
			t.Errorf("the scripts have %+v, not %+v", got, want)
		}
		if got, want := c.limits(), (worker.Limits{Action: 2*limit + time.Minute, Reboot: 7 * time.Second}); got != want {
			t.Errorf("the worker has %+v, not %+v", got, want)
		}
	}
}
