package worker

import (
	"context"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// unproved is told of an upgrade without a plan.
const unproved = "what it changed could not be verified, because prepare made no plan"

// compared adds to the failure of an upgrade what the host says by comparison with the plan:
// what somebody else has changed meanwhile, and whether the upgrade has changed nothing. It
// is asked before the rollback, after which nobody can tell.
func (w *Worker) compared(ctx context.Context, job strategy.Job, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if !w.proves(job.Plan) {
		return fmt.Errorf("%w; %s", err, unproved)
	}
	undo, cannot := w.toUndo(ctx, job)
	if cannot != nil {
		w.warn(ctx, "cannot tell what a failed upgrade has changed", cannot)
		return err
	}
	job.Staged = true
	missing, cannot := w.missing(ctx, job)
	if cannot != nil {
		w.warn(ctx, "cannot tell what a failed upgrade has changed", cannot)
		return err
	}
	if others := undo.Others(); others != "" {
		err = fmt.Errorf("%w; %s", err, others)
	}
	if undo.Unchanged(job.Plan.Changes, missing) {
		err = decide.Unchanged(err)
	}
	return err
}

// callRollback undoes a failed upgrade. It is rolled back once the comparison that proves done
// proves that, too.
func (w *Worker) callRollback(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	outcome, err := within(ctx, w, string(decide.DoRollback), job, w.Strategy.Rollback)
	if err != nil || outcome != strategy.Done {
		return outcome, err
	}
	// First what runs, then what the next boot starts: that must not be the failed upgrade.
	for _, job.Staged = range []bool{false, true} {
		undo, err := w.toUndo(ctx, job)
		switch {
		case err != nil:
			return 0, err
		case len(undo.Back) > 0:
			return 0, strategy.Fail(message.Install, notUndone(undo, job.Staged))
		}
	}
	return outcome, nil
}

func notUndone(undo strategy.Undo, staged bool) error {
	when := ""
	if staged {
		when = " for the next boot"
	}
	return fmt.Errorf("it reported success, but %s not undone%s: %s; read its output, then repair the host",
		text.Count(len(undo.Back), "change is", "changes are"), when, text.List(message.ChangeTexts(strategy.Reversed(undo.Back)), 5))
}

// toUndo compares the host with what it was before its plan.
func (w *Worker) toUndo(ctx context.Context, job strategy.Job) (strategy.Undo, error) {
	plan := job.Plan.Changes
	if len(plan) == 0 {
		return strategy.Undo{}, nil
	}
	job.Plan, job.Reversed = message.ChangeSet{Changes: strategy.Reversed(plan)}, true
	differs, err := w.missing(ctx, job)
	return strategy.ToUndo(plan, differs), err
}

// missing returns the changes of a plan that the host does not have.
func (w *Worker) missing(ctx context.Context, job strategy.Job) ([]message.Change, error) {
	missing, err := within(ctx, w, "the comparison of the host with its plan", job, w.Strategy.Missing)
	if err != nil {
		return nil, fmt.Errorf("cannot compare the host with its plan: %w", err)
	}
	return missing, nil
}

// foundUpToDate reports whether the plan of the run proves that there is nothing to change.
func (w *Worker) foundUpToDate() bool {
	plan, err := readPlan(w.planPath(), w.state.Journal)
	return err == nil && len(plan.Changes) == 0 && plan.Reboot == "" && w.proves(plan)
}

// proves reports whether a plan proves an upgrade: it has changes, or says that there are none.
func (w *Worker) proves(plan message.ChangeSet) bool {
	planner, may := w.Strategy.(strategy.Planner)
	return len(plan.Changes) > 0 || !may || planner.Plans()
}
