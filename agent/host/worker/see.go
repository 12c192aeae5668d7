package worker

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// see gathers what the next decision is based on.
func (w *Worker) see(now leaseTerm) decide.Seen {
	seen := decide.Seen{Host: w.Host, BootID: w.bootID, Confirms: w.confirms(), Lease: now.state, Epoch: now.epoch, Busy: w.notNow(), Limit: w.Limits.Action, Retires: w.retires()}
	if planner, may := w.Strategy.(strategy.Planner); may {
		seen.Planless = !planner.Plans()
	}
	if w.state.Phase == decide.Upgrading {
		seen.Prepared, _ = readKeptPlan(w.planPath()) // Without its plan an upgrade does not begin.
	}
	if len(w.state.Boots.Waits()) > 0 {
		seen.Accepted = w.accepted()
	}
	if w.passed == nil {
		select {
		case p := <-w.passes:
			w.passed = &p
		default:
		}
	}
	if w.passed != nil {
		seen.Passed = &w.passed.Pass
	}
	return seen
}

// confirms reports whether the host may have more than one bootable system.
func (w *Worker) confirms() bool {
	_, confirms := w.Strategy.(strategy.Confirmer)
	return confirms
}

func (w *Worker) notNow() *message.NotNow {
	if w.Busy == nil {
		return nil
	}
	return w.Busy.Now()
}

// retires reports whether the worker is to make room for the next one as soon as no run has
// another command for it: no check or hook is under way. The next worker finds the host as
// this one leaves it.
func (w *Worker) retires() bool {
	return w.Supervisor != nil && !w.tasks.busy() && w.Supervisor.Replaced()
}
