package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// confirmBoot confirms the system that has started outside of an upgrade, or after one
// that failed. It is tried again with the next start of the worker if it fails, and holds
// nothing up: the host works, whatever its boot loader says.
func (w *Worker) confirmBoot(ctx context.Context, now leaseTerm) error {
	w.At("before confirm")
	boot, err := w.booted(ctx)
	if err == nil {
		// It is on disk before the machine forgets it.
		if err := w.remember(ctx, w.state.Judge(boot, w.planned(boot.Failed) != "", w.see(now), w.Now())); err != nil {
			return err
		}
		err = w.confirmJudged(ctx, boot)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.Log.Warn("cannot confirm the system that has started; it is tried again when the worker starts again", "host", w.Host, "boot", w.bootID, "error", err)
		next := w.state
		next.Unconfirmed = decide.NothingLeft
		w.take(next)
	}
	w.At("after confirm")
	return nil
}

// confirmJudged confirms as much of a boot as State.Judge has decided.
func (w *Worker) confirmJudged(ctx context.Context, boot strategy.Boot) error {
	switch w.state.Unconfirmed {
	case decide.NothingLeft:
		w.Log.Info("the system that has started is confirmed once the checks of the rollout have passed", "host", w.Host, "running", boot.Running, "boot", w.bootID)
		return nil
	case decide.GivenUp:
		w.Log.Warn("what the machine gave up stays marked until the site is connected and says that this worker is the one of its host", "host", w.Host, "failed", boot.Failed, "running", boot.Running, "boot", w.bootID)
		return w.markGood(ctx, strategy.Boot{Running: boot.Running})
	default:
		return w.confirm(ctx, boot)
	}
}

// settle ends the trial of a host whose checks have passed. If the system cannot be
// confirmed, the site is told that they failed: the next start of the machine would undo the
// upgrade.
func (w *Worker) settle(ctx context.Context, p settling) error {
	defer close(p.done)
	w.At("before pass")
	err := w.confirmPassed(ctx, p)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.At("after pass")
	if err != nil {
		w.Log.Warn("the checks have passed, and the system is not confirmed", "host", w.Host, "run", p.Task.Run, "error", err)
	}
	p.done <- p.Task.Outcome(err == nil, failureText(err))
	return nil
}

// errLeft is why checks that have passed do not count although the host is well.
var errLeft = errors.New("it took too long, and the site has them run again")

// confirmPassed ends the trial and confirms what runs, unless nobody waits for the outcome any
// more: the site has the checks run again, and hears how they come out then.
func (w *Worker) confirmPassed(ctx context.Context, p settling) error {
	boot, err := w.booted(ctx)
	if err != nil || boot.Running == "" { // It has just one system.
		return err
	}
	if err := w.stillUpgraded(ctx, p.Task); err != nil || w.state.Boots.Trial == nil {
		return err
	}
	if !w.state.Boots.PassedIn(p.Task) {
		select {
		case <-p.left:
			return errLeft
		default:
		}
		if err := w.remember(ctx, w.state.Settle(p.Task)); err != nil {
			return err
		}
	}
	return w.confirm(ctx, boot)
}

// stillUpgraded returns an error if the host has answered that it is upgraded in the run of a
// task, and has gone back since: its checks have passed on the system before the upgrade.
func (w *Worker) stillUpgraded(ctx context.Context, t message.Task) error {
	j := w.state.Journal
	if j.Run != t.Run || j.Action == message.Prepare || j.Result.Outcome != message.Done {
		return nil
	}
	job := w.job()
	job.Reversed = j.RollsBack != ""
	var err error
	if job.Plan, err = readPlan(w.planPath(), j); err != nil {
		return nil //nolint:nilerr // The upgrade was compared with its plan before it was answered.
	}
	if err := w.nothingMissing(ctx, job); err != nil {
		return fmt.Errorf("the host does not run any more what it was upgraded to: %w", err)
	}
	return nil
}

// started returns which system has started. It is an error that the machine has given one up
// since the last boot that was judged.
func (w *Worker) started(ctx context.Context) (strategy.Boot, error) {
	boot, err := w.booted(ctx)
	if err == nil && boot.Failed != "" && w.state.Boots.Judged != w.bootID {
		err = strategy.Fail(message.Boot, decide.FellBack(boot))
	}
	return boot, err
}

// booted asks which system has started, and remembers the version that the machine gave
// up.
func (w *Worker) booted(ctx context.Context) (strategy.Boot, error) {
	c, ok := w.Strategy.(strategy.Confirmer)
	if !ok {
		return strategy.Boot{}, nil
	}
	boot, err := within(ctx, w, "asking which system has started", strategy.Job{}, func(ctx context.Context, _ strategy.Job) (strategy.Boot, error) {
		return c.Booted(ctx)
	})
	if err != nil {
		return boot, fmt.Errorf("cannot find out which system has started: %w", err)
	}
	next, r, rejected := w.state.Reject(boot, w.planned(boot.Failed), w.bootID, w.Now())
	if !rejected {
		return boot, nil
	}
	w.Log.Warn("the machine went back by itself", "host", w.Host, "failed", r.Version, "running", r.Running, "boot", w.bootID)
	if err := w.remember(ctx, next); err != nil {
		return boot, err
	}
	w.sendAlive() // The site is told at once.
	return boot, nil
}

// confirm marks the system that runs as good, and remembers that, unless this boot is done
// with.
func (w *Worker) confirm(ctx context.Context, boot strategy.Boot) error {
	if w.state.Boots.Judged == w.bootID {
		return nil
	}
	return w.confirmVerified(ctx, boot)
}

// confirmVerified is confirm for a system that was verified just now. It may have failed that
// before in this boot, so that it was left unconfirmed.
func (w *Worker) confirmVerified(ctx context.Context, boot strategy.Boot) error {
	if boot.Running != "" {
		if err := w.markGood(ctx, boot); err != nil {
			return err
		}
		w.Log.Debug("confirmed the system that has started", "host", w.Host, "running", boot.Running, "failed", boot.Failed, "boot", w.bootID)
	}
	return w.remember(ctx, w.state.Judged(w.bootID))
}

// confirmUpgraded confirms the system of a host that has its plan, unless it waits for the checks of
// the run.
func (w *Worker) confirmUpgraded(ctx context.Context, boot strategy.Boot) error {
	if w.state.Boots.OnTrial(boot, w.Now()) {
		return w.remember(ctx, w.state.ConfirmLater(w.bootID))
	}
	return strategy.Fail(message.Boot, w.confirmVerified(ctx, boot))
}

// markGood has the strategy mark the system that runs as good, and the failed one as bad.
func (w *Worker) markGood(ctx context.Context, boot strategy.Boot) error {
	c, ok := w.Strategy.(strategy.Confirmer)
	if !ok || boot.Running == "" {
		return nil
	}
	_, err := within(ctx, w, "confirming the system that has started", strategy.Job{}, func(ctx context.Context, _ strategy.Job) (struct{}, error) {
		return struct{}{}, c.Confirm(ctx, boot)
	})
	if err != nil {
		return fmt.Errorf("cannot confirm that %s runs: %w", boot.Running, err)
	}
	return nil
}
