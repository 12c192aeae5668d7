package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// act takes one action and writes its outcome to the journal. If ctx ends during
// the action it writes nothing: the phase stays, and at the next start the strategy
// finds out what happened.
func (w *Worker) act(ctx context.Context, now leaseTerm, do decide.Do) error {
	w.At("before " + string(do))
	began := w.Now()
	outcome, err := w.perform(ctx, now, do)
	if ctx.Err() == nil && err == nil && do == decide.DoPrepare {
		err = w.writePlan(ctx, w.prepared)
	}
	// A machine that has accepted the reboot may end this worker at once.
	if accepted := do == decide.DoReboot && err == nil; ctx.Err() != nil && !accepted {
		return ctx.Err()
	}
	if do == decide.DoGetRelease && err != nil && strategy.ClassOf(err) == "" {
		return w.yield(now, err) // The site was not heard: the worker asks again.
	}
	if do == decide.DoReply && err != nil {
		// The phase must stay Answering.
		return w.yield(now, err)
	}
	w.At("after " + string(do))
	next, again := w.state.After(decide.Ended{
		Do: do, Outcome: outcome, Err: err, UpToDate: do == decide.DoVerify && err == nil && w.foundUpToDate(), Release: w.gotten, Began: began, Limit: w.Limits.Action,
	}, w.bootID, w.Now())
	switch {
	case again:
		w.tellRetry(do, next.Journal, err)
	case err != nil:
		w.Log.Warn("action failed", "host", w.Host, "run", next.Run, "action", do, "error", err)
	}
	err = w.remember(ctx, next)
	if do == decide.DoPrepare {
		w.planKept.Set()
	}
	return err
}

func (w *Worker) perform(ctx context.Context, now leaseTerm, do decide.Do) (strategy.Outcome, error) {
	switch do {
	case decide.DoBooted, decide.DoMissReboot:
		return 0, nil
	case decide.DoReply:
		return 0, w.bounded(now.ctx, w.reply)
	case decide.DoReboot:
		return 0, w.askReboot(ctx)
	case decide.DoGetRelease:
		return 0, w.bounded(now.ctx, w.getRelease)
	}
	// The host does one thing at a time: a plan that is asked for beside the loop (sendOffers)
	// might hold a lock that this action needs.
	w.promise(w.Limits.Action)
	select {
	case w.atHost <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-w.atHost }()
	this := actionOf{w.state.Run, w.prints(do)}
	w.current.Store(&this)
	outcome, err := w.call(ctx, do)
	w.current.Store(nil)
	w.outputs.Put(this, struct{}{})
	return outcome, err
}

// prints returns the action of the strategy whose output belongs to an action.
func (w *Worker) prints(do decide.Do) string {
	if w.state.RollsBack != "" && do != decide.DoPrepare {
		do = decide.DoRollback
	}
	return string(do)
}

func (w *Worker) call(ctx context.Context, do decide.Do) (strategy.Outcome, error) {
	if do == decide.DoPrepare { // What the machine gave up is in no plan, also if nobody could read that before.
		if _, err := w.booted(ctx); err != nil {
			return 0, err
		}
	}
	if w.state.RollsBack != "" {
		return w.rollBack(ctx, do)
	}
	job, err := w.jobOfRun()
	if err != nil {
		return 0, err
	}
	if job.Plan, err = w.planFor(do); err != nil {
		return 0, err
	}
	switch do {
	case decide.DoPrepare:
		return 0, w.callPrepare(ctx, job)
	case decide.DoUpgrade:
		job.Outputs = w.given
		w.baseline(ctx)
		outcome, err := w.callUpgrade(ctx, do, job, w.Strategy.Upgrade)
		return outcome, w.compared(ctx, job, err)
	case decide.DoResume:
		if err := w.rebootedInIt(ctx); err != nil {
			return 0, err
		}
		if w.usesOutputs() {
			job.Outputs = w.stepOutputs
		}
		outcome, err := w.callUpgrade(ctx, do, job, w.Strategy.Resume)
		return outcome, w.compared(ctx, job, err)
	case decide.DoVerify:
		return 0, w.compared(ctx, job, w.callVerify(ctx, job))
	case decide.DoRollback:
		return w.callRollback(ctx, job)
	default:
		return 0, fmt.Errorf("%s is not a call of a strategy", do)
	}
}

// baseline notes what the checks after the upgrade compare with. Without it they count what was
// wrong before, too.
func (w *Worker) baseline(ctx context.Context) {
	if err := w.Checks.Baseline(ctx, w.state.Run); err != nil {
		w.warn(ctx, "cannot note the state before the upgrade, which checks compare with", err)
	}
}

// rebootedInIt returns an error if the machine has rebooted in the midst of an upgrade, and given up
// what that installed: it is not installed again.
func (w *Worker) rebootedInIt(ctx context.Context) error {
	if w.state.BootID == w.bootID {
		return nil
	}
	_, err := w.started(ctx)
	return err
}

// callPrepare prepares the host and keeps the plan.
func (w *Worker) callPrepare(ctx context.Context, job strategy.Job) error {
	if err := w.checkRelease(ctx, job); err != nil {
		return err
	}
	plan, err := within(ctx, w, string(decide.DoPrepare), job, w.Strategy.Prepare)
	if err != nil {
		return err
	}
	return w.keepPrepared(plan)
}

// keepPrepared keeps a plan until it is on disk.
func (w *Worker) keepPrepared(plan message.ChangeSet) error {
	plan = plan.Sorted()
	if err := plan.Check(); err != nil {
		return fmt.Errorf("the strategy made a plan that cannot be kept: %w", err)
	}
	w.prepared = plan
	return nil
}

// callUpgrade upgrades the host or resumes that. An upgrade that takes effect with a
// reboot is complete once nothing of its plan is missing for the next boot.
func (w *Worker) callUpgrade(ctx context.Context, do decide.Do, job strategy.Job, upgrade func(context.Context, strategy.Job) (strategy.Outcome, error)) (strategy.Outcome, error) {
	outcome, err := within(ctx, w, string(do), job, upgrade)
	if err != nil || outcome != strategy.RebootRequired {
		return outcome, err
	}
	job.Staged = true
	return outcome, w.nothingMissing(ctx, job)
}

// callVerify checks the upgraded host: first that it has its plan, then that it is
// well.
func (w *Worker) callVerify(ctx context.Context, job strategy.Job) error {
	boot, err := w.started(ctx)
	if err != nil {
		return err
	}
	if err := w.nothingMissing(ctx, job); err != nil {
		return err
	}
	if err := w.hasRelease(ctx, job); err != nil {
		return err
	}
	if !w.proves(job.Plan) {
		job.Progress(-1, unproved)
	}
	_, err = within(ctx, w, string(decide.DoVerify), job, func(ctx context.Context, job strategy.Job) (struct{}, error) {
		return struct{}{}, w.Strategy.Verify(ctx, job)
	})
	switch {
	case err == nil:
		return w.confirmUpgraded(ctx, boot)
	case strategy.ClassOf(err) == "":
		err = strategy.Fail(message.Verify, err)
	}
	return fmt.Errorf("verify: %w", err)
}

// reply sends the reply in the journal. A reply that the site refuses counts as
// sent, because the site would refuse it again.
func (w *Worker) reply(ctx context.Context) error {
	if w.state.Action == message.Prepare {
		w.reports.Put(make(chan struct{}), struct{}{}) // Nothing waits for this report.
	} else {
		w.versionsBeforeReply(ctx)
	}
	err := w.HostLog.Reply(ctx, w.state.Run, message.Reply{
		Action: w.state.Action, Result: w.state.Result, Log: w.state.Log,
	})
	switch {
	case errors.Is(err, log.ErrAnswered):
		return nil
	case errors.Is(err, log.ErrRefused):
		w.Log.Warn("the reply was refused", "host", w.Host, "run", w.state.Run, "action", w.state.Action, "result", w.state.Result.String(), "error", err)
		return nil
	}
	return err
}

func (w *Worker) askReboot(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, w.Limits.Reboot, fmt.Errorf("asking for it took longer than %s", w.Limits.Reboot))
	defer cancel()
	if err := overdue(limited, w.Machine.Reboot(limited, w.job())); err != nil {
		return strategy.Fail(message.Boot, fmt.Errorf("cannot reboot: %w", err))
	}
	return nil
}

// awaitReboot waits for the reboot to end this process, and replies if it does not.
// Only a new boot id proves a reboot, so this process never reports success: the next
// one does.
func (w *Worker) awaitReboot(ctx context.Context) error {
	if err := wait.Sleep(ctx, w.Limits.Reboot); err != nil {
		return err
	}
	asked := "the reboot was accepted"
	if w.state.Reboot != decide.Accepted {
		asked = "the reboot was asked for before the worker was started again"
	}
	err := strategy.Fail(message.Boot, fmt.Errorf("%s, yet the host was still up %s later", asked, w.Limits.Reboot))
	next, _ := w.state.After(decide.Ended{Do: decide.DoAwaitReboot, Err: err}, w.bootID, w.Now())
	w.Log.Warn("action failed", "host", w.Host, "run", next.Run, "action", decide.DoAwaitReboot, "error", err)
	return w.remember(ctx, next)
}

// awaitRetry waits until the next try is due, or the lease changes.
func (w *Worker) awaitRetry(ctx context.Context, now leaseTerm) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(now.ctx, cancel)
	defer stop()
	if wait.Sleep(waiting, w.state.UntilRetry(w.Now())) != nil && ctx.Err() == nil {
		return errMoved
	}
	return ctx.Err()
}

// tellRetry tells people why an action is taken again, and when.
func (w *Worker) tellRetry(do decide.Do, next decide.Journal, err error) {
	w.lastFailure = message.CleanText(err.Error())
	if next.Retry.Tries == 1 {
		w.failedAt = 0
	}
	w.failedAt = max(w.failedAt, int(w.reached.Load()))
	text := fmt.Sprintf("%s: %s; it is tried again in %s, for the %s time", do, w.lastFailure,
		next.UntilRetry(w.Now()).Round(time.Second), ordinal(next.Retry.Tries+1))
	w.Log.Warn("action is to be taken again", "host", w.Host, "run", next.Run, "action", do, "class", strategy.ClassOf(err), "due", next.Retry.Due, "error", err)
	w.say(message.Progress{Run: next.Run, Percent: -1, Message: text, Failing: w.failing(next)})
}

// failing is why the action of a journal fails again and again; empty unless several tries have
// failed since the worker started.
func (w *Worker) failing(j decide.Journal) string {
	if !j.Retry.Lasts() {
		return ""
	}
	return w.lastFailure
}

// say tells people how the work goes on. It does not matter to the work whether they hear it.
func (w *Worker) say(p message.Progress) {
	if err := w.HostLog.Progress(p); err != nil {
		w.Log.Debug("cannot send progress", "host", w.Host, "error", err)
	}
}

// tellInterrupted tells people that an action has ended its worker or machine again and again, and
// when it is taken again.
func (w *Worker) tellInterrupted(before decide.State) {
	next := w.state.Journal
	ended := next.Retry.Ended(before.Phase)
	if ended == "" {
		return
	}
	text := fmt.Sprintf("%s; next try in %s", ended, next.UntilRetry(w.Now()).Round(time.Second))
	w.Log.Warn("the worker has ended in the midst of an action", "host", w.Host, "run", next.Run, "phase", before.Phase, "ends", next.Retry.Ends, "due", next.Retry.Due)
	w.say(message.Progress{Run: next.Run, Percent: -1, Message: text})
}

func ordinal(n int) string {
	switch n {
	case 2:
		return "2nd"
	case 3:
		return "3rd"
	default:
		return fmt.Sprintf("%dth", n)
	}
}
