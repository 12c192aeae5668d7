package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// This file starts a run and waits for its end, for the resource and the actions alike. What
// differs between them is in waiter.

// waiter is who waits for a run, in the words of its errors.
type waiter struct {
	// typeName is osupgrade_run or that of an action.
	typeName string
	// did is what was done to the run, such as "was started".
	did string
	// limit is the attribute that bounds the wait.
	limit string
	// retry is where retry_of starts a run of the hosts that are left, and again what starts
	// one of all hosts.
	retry, again string
	// interrupted and timedOut say how to go on after a wait that saw no end.
	interrupted, timedOut string
	// holders are the other resources of this process; nil is for those that may share a run.
	holders *holders
	// returns is set if nobody waits for the end of the run.
	returns bool
	// anyResult is set if each result of the run is as good as another.
	anyResult bool
	// send tells a person what happens. The log is told more; nil tells the log alone.
	send func(line string)
}

// resourceWaiter waits for the resource.
var resourceWaiter = waiter{
	typeName: TypeName, did: "was started", limit: "timeouts.create",
	retry: "set retry_of = %d", again: "apply again",
	interrupted: "The next apply waits for its end.",
	timedOut: "The resource is tainted. If the run is still in progress at the next apply, that waits for its end instead of starting another. " +
		"If the run completes before that and no other is needed, use terraform untaint.",
}

// tell tells log and person.
func (w waiter) tell(ctx context.Context, line string) {
	tflog.Info(ctx, line)
	if w.send != nil {
		w.send(line)
	}
}

// watcher returns a function that tells how each run that it is given differs from the one
// before, and how the newest one can be read.
func (w waiter) watcher(ctx context.Context) (see func(v1.Run), newest func() v1.Run) {
	var seen v1.Run
	see = func(next v1.Run) {
		for _, line := range changes(seen, next, false) {
			tflog.Info(ctx, line)
		}
		if w.send != nil {
			for _, line := range changes(seen, next, true) {
				w.send(line)
			}
		}
		seen = next
	}
	return see, func() v1.Run { return seen }
}

// noConfiguration is the advice for a start that meets 404.
const noConfiguration = "Apply osupgrade_config for the tenant first, or check the name of the tenant and the provider's endpoint."

// begin starts a run. If another run is under way, it first waits for its end. If that run has
// the same purpose, an apply that did not see its end has started it, and begin takes it over:
// at once if runs may be shared or nobody waits for their ends, and else after the wait, when
// the resources that have it in their states have been heard. The id of the request is made here, so that a start whose
// answer was lost can be repeated.
func (w waiter) begin(ctx context.Context, api *client.Client, tenant, purpose string, start v1.Start) (v1.Run, error) {
	start.RequestID = purpose + fmt.Sprintf("%08x", rand.Uint32())
	if w.holders != nil {
		w.holders.request(start.RequestID)
	}
	var over uint64 // A run that was waited for to its end, so that it does not stand in the way any more.
	for {
		run, err := api.Start(ctx, tenant, start)
		id := tenantobject.BlockingRun(err)
		if id == 0 || id == over {
			return run, err
		}
		run, err = api.Run(ctx, tenant, id)
		same := err == nil && strings.HasPrefix(run.RequestID, purpose)
		if same && (w.holders == nil || w.returns && w.holders.take(id, run.RequestID)) {
			return w.takeOver(ctx, tenant, run), nil
		}
		if w.send != nil {
			w.send(fmt.Sprintf("run %d of tenant %s is in progress; waiting for its end", id, tenant))
		}
		see, newest := w.watcher(ctx)
		see(run)
		err = tenantobject.UntilUnblocked(ctx, api, tenant, id, see)
		if same && w.holders.take(id, run.RequestID) {
			return w.takeOver(ctx, tenant, newest()), nil
		}
		if err != nil {
			return v1.Run{}, err
		}
		over = id
	}
}

func (w waiter) takeOver(ctx context.Context, tenant string, run v1.Run) v1.Run {
	w.tell(ctx, fmt.Sprintf("run %d of tenant %s was started for the same purpose; taking it over", run.ID, tenant))
	return run
}

// await follows a run to its end and judges the result. It returns the last known state of
// the run. What stopped by a signal is no failure of the run.
func (w waiter) await(ctx context.Context, api *client.Client, tenant string, run v1.Run, accept types.Set, diags *diag.Diagnostics) v1.Run {
	see, newest := w.watcher(ctx)
	see(run)
	_, err := tenantobject.ForRun(ctx, api, tenant, run.ID, see)
	last := newest()
	switch {
	case errors.Is(err, context.Canceled):
		diags.AddWarning("The run has not ended", strings.TrimSpace(fmt.Sprintf(
			"Run %d of tenant %s continues%s. %s", last.ID, tenant, tenantobject.Standing(last), w.interrupted)))
	case err != nil:
		w.notFollowed(tenant, last, err, diags)
	case !w.anyResult:
		w.judge(tenant, last, accepted(accept, last.Result), diags)
	}
	return last
}

// done tells what was done to a run of which nobody waits for the end.
func (w waiter) done(ctx context.Context, run v1.Run) {
	w.tell(ctx, fmt.Sprintf("run %d %s%s", run.ID, w.did, tenantobject.Standing(run)))
}

// notFollowed adds the error for a run of which the end is not known.
func (w waiter) notFollowed(tenant string, last v1.Run, err error, diags *diag.Diagnostics) {
	why := "it could not be followed: " + err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		why = "it did not end within " + w.limit + tenantobject.Standing(last)
	}
	diags.AddError("Unable to wait for the end of "+w.typeName, strings.TrimSpace(fmt.Sprintf(
		"Run %d of tenant %s %s, but %s. The run itself may still be in progress; osupgrade-agent watch shows it. %s",
		last.ID, tenant, w.did, why, w.timedOut)))
}

// judge adds an error if a run's result is not accepted.
func (w waiter) judge(tenant string, r v1.Run, accepted bool, diags *diag.Diagnostics) {
	detail, notAll := explain(tenant, r), "Not all hosts of "+w.typeName+" were upgraded"
	if r.RollbackOf != 0 {
		notAll = "Not all hosts of " + w.typeName + " were rolled back"
	}
	switch {
	case accepted && r.Result == "completed":
	case accepted:
		diags.AddWarning(notAll, detail)
	case r.Result == "partial" && r.RollbackOf != 0:
		diags.AddError(notAll, detail+
			fmt.Sprintf("\n\nTo roll back the hosts that are left: correct the cause and start the rollback of run %d again, which goes on with them.", r.RollbackOf)+
			" To succeed with such a result: set accept = [\"completed\", \"partial\"].")
	case r.Result == "partial":
		diags.AddError(notAll, detail+
			"\n\nTo upgrade the hosts that are left: correct the cause and "+fmt.Sprintf(w.retry, r.ID)+
			". To start another run of all hosts: "+w.again+". To succeed with such a result: set accept = [\"completed\", \"partial\"].")
	default:
		diags.AddError("Unable to complete "+w.typeName,
			detail+"\n\nWhat the run has done on its hosts stays. Correct the cause and "+w.again+", which starts another run.")
	}
}

// explain lists the run's result and the hosts that were not upgraded.
func explain(tenant string, r v1.Run) string {
	lines := []string{fmt.Sprintf("Run %d of tenant %s ended with the result %s%s", r.ID, tenant, r.Result, colon(r.Reason))}
	for _, h := range r.Hosts {
		if h.Status != "upgraded" {
			lines = append(lines, fmt.Sprintf("  host %s is %s%s", h.Hostname, h.Status, colon(h.Error)))
		}
	}
	return strings.Join(lines, "\n")
}
