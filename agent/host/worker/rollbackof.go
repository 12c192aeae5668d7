package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// canRollBack reports whether this host can roll back a run.
func (w *Worker) canRollBack() bool {
	_, can := w.Strategy.(strategy.RollbackPreparer)
	return can
}

// rollBack takes an action of a run that rolls others back: the rollback of what they changed comes in
// place of the upgrade.
func (w *Worker) rollBack(ctx context.Context, do decide.Do) (strategy.Outcome, error) {
	if do == decide.DoPrepare {
		return 0, w.callPrepareRollback(ctx)
	}
	plan, err := w.planFor(do)
	if err != nil {
		return 0, err
	}
	switch do {
	case decide.DoUpgrade:
		w.baseline(ctx)
		return w.callRollbackOf(ctx, plan)
	case decide.DoResume:
		if err := w.rebootedInIt(ctx); err != nil {
			return 0, err
		}
		return w.callRollbackOf(ctx, plan)
	case decide.DoVerify:
		return 0, w.verifyRolledBack(ctx, plan)
	default:
		return 0, fmt.Errorf("%s is no action of a rollback", do)
	}
}

// undoes returns what a rollback changes on this host.
func (w *Worker) undoes() (decide.Undoing, error) {
	runs, err := message.ParseInterval(w.state.RollsBack)
	if err != nil {
		return decide.Undoing{}, err
	}
	undo, err := w.state.Kept.Undo(runs)
	return undo, strategy.Fail(message.Artifact, err)
}

// jobToUndo returns the job of the strategy that undoes what the runs have changed.
func (w *Worker) jobToUndo(undo decide.Undoing) (job strategy.Job, err error) {
	job = w.job()
	job.RollbackOf, job.Plan = undo.Run, message.ChangeSet{Changes: undo.Changes}
	if err := setRelease(&job, undo.Release); err != nil {
		return job, err
	}
	job.Was, err = releaseOf(undo.Was)
	return job, err
}

// callPrepareRollback prepares the way back, and keeps the reversed plan.
func (w *Worker) callPrepareRollback(ctx context.Context) error {
	undo, err := w.undoes()
	if err != nil {
		return err
	}
	if undo.Undone {
		return w.keepPrepared(message.ChangeSet{})
	}
	job, err := w.jobToUndo(undo)
	if err != nil {
		return err
	}
	preparer, can := w.Strategy.(strategy.RollbackPreparer)
	if !can {
		return strategy.Fail(message.Artifact, strategy.ErrNoRollback)
	}
	if job.Plan.Changes, err = w.toRollBack(ctx, undo); err != nil {
		return err
	}
	plan, err := within(ctx, w, "prepare of the rollback", job, preparer.PrepareRollback)
	if errors.Is(err, strategy.ErrNoRollback) {
		err = strategy.Fail(message.Artifact, err)
	}
	if err != nil {
		return err
	}
	return w.keepPrepared(plan)
}

// toRollBack returns the changes that are to be undone, by what the host has of them now.
func (w *Worker) toRollBack(ctx context.Context, undo decide.Undoing) ([]message.Change, error) {
	if !undo.Several() {
		return undo.Changes, nil
	}
	job := w.job()
	job.Plan, job.Reversed = message.ChangeSet{Changes: strategy.Reversed(undo.Changes)}, true
	differs, err := w.missing(ctx, job)
	return undo.From(differs), err
}

// callRollbackOf undoes what the runs have changed: what prepare has told of it. If that takes effect with
// a reboot, it is complete once nothing of the reversed plan is missing for the next boot.
func (w *Worker) callRollbackOf(ctx context.Context, plan message.ChangeSet) (strategy.Outcome, error) {
	undo, err := w.undoes()
	if err != nil || undo.Undone {
		return strategy.Done, err
	}
	job, err := w.jobToUndo(undo)
	if err != nil {
		return 0, err
	}
	if len(plan.Changes) == 0 && (w.proves(plan) || len(job.Plan.Changes) > 0) {
		return strategy.Done, nil // Nothing of it is there, and a script might undo what is older.
	}
	job.Plan = message.ChangeSet{Changes: strategy.Reversed(plan.Changes)}
	outcome, err := within(ctx, w, "rollback", job, w.Strategy.Rollback)
	if err != nil || outcome != strategy.RebootRequired {
		return outcome, err
	}
	return outcome, w.rolledBack(ctx, plan, true)
}

// verifyRolledBack proves that the host has what it had before, and confirms the system that runs.
func (w *Worker) verifyRolledBack(ctx context.Context, plan message.ChangeSet) error {
	boot, err := w.started(ctx)
	if err != nil {
		return err
	}
	if w.state.Action == message.Reboot {
		outcome, err := w.callRollbackOf(ctx, plan)
		if err == nil && outcome == strategy.RebootRequired {
			err = strategy.Fail(message.Boot, errors.New("the rollback asks for another reboot, and a host reboots once to roll back"))
		}
		if err != nil {
			return err
		}
	}
	// First what runs, then what the next boot starts: that must not be what was rolled back.
	for _, staged := range []bool{false, true} {
		if err := w.rolledBack(ctx, plan, staged); err != nil {
			return err
		}
	}
	if !w.proves(plan) {
		w.job().Progress(-1, unproved)
	}
	return w.confirmUpgraded(ctx, boot)
}

// rolledBack returns an error if the host lacks a change of the reversed plan.
func (w *Worker) rolledBack(ctx context.Context, plan message.ChangeSet, staged bool) error {
	job := w.job()
	job.Plan, job.Reversed, job.Staged = plan, true, staged
	return w.nothingMissing(ctx, job)
}
