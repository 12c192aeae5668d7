package simulated

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Detect reads every file of the host and returns their errors.
func (h *Host) Detect(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := h.locked(h.check); err != nil {
		return fmt.Errorf("cannot upgrade simulated host: %w", err)
	}
	return nil
}

// Versions returns the running packages. A new kernel runs after the boot.
func (h *Host) Versions(ctx context.Context) (map[string]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.packages()
}

// VersionPaths implements strategy.Watcher.
func (h *Host) VersionPaths() []string { return []string{h.path(packagesFile)} }

// Output implements strategy.Printer: an action has printed its lines in effects.log.
func (h *Host) Output(run uint64, action string, limit int) (printed []byte, cut bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	data, err := os.ReadFile(h.path(effectsFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	for line := range bytes.Lines(data) {
		var e Effect
		if format.Simulated.Decode(line, &e) == nil && e.Run == run && e.Action == action {
			printed = append(printed, line...)
		}
	}
	if over := len(printed) - limit; over > 0 {
		printed, cut = printed[over:], true
	}
	return printed, cut, err
}

// Releases implements strategy.Releaser. Of a release of any kind the host gets what it installs.
func (h *Host) Releases() []release.Kind {
	return []release.Kind{release.OfData, release.OfImages, release.OfPackages}
}

// Plan returns the next version of each package that the host knows of, or those that the release
// installs, without those that were rolled back. Each time that it fetches there is a next version.
func (h *Host) Plan(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	if err := ctx.Err(); err != nil {
		return message.ChangeSet{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.plan(job, job.Fetch)
}

// available are the packages that the host knows of: as last fetched, and at first the next ones.
func (h *Host) available(current packages) (packages, error) {
	var known packages
	err := h.read(availableFile, &known)
	if errors.Is(err, fs.ErrNotExist) {
		return current.next(), nil
	}
	return known, err
}

func (h *Host) plan(job strategy.Job, fetch bool) (message.ChangeSet, error) {
	current, err := h.packages()
	if err != nil {
		return message.ChangeSet{}, err
	}
	next := current.next()
	switch {
	case job.Release != nil:
		err = strategy.CheckRelease(h, job)
		next = current.with(job.Release.Installs)
	case !fetch:
		next, err = h.available(current)
	}
	if fetch && err == nil {
		err = h.write(availableFile, next)
	}
	if err != nil {
		return message.ChangeSet{}, err
	}
	plan := current.planTo(next).Withhold(job.Rejected, "it was rolled back")
	if changesKernel(plan) {
		plan.Reboot = rebootReason
	}
	return plan, nil
}

// rebootReason is why a plan takes a reboot that changes the kernel.
const rebootReason = "the kernel changes"

func changesKernel(plan message.ChangeSet) bool {
	return slices.ContainsFunc(plan.Changes, func(c message.Change) bool { return c.Name == kernel })
}

// Prepare changes only effects.log, and what the host knows of.
func (h *Host) Prepare(ctx context.Context, job strategy.Job) (plan message.ChangeSet, err error) {
	err = h.act(ctx, actionPrepare, job.Progress, func(string) (err error) {
		if plan, err = h.plan(job, true); err != nil {
			return err
		}
		return h.record(actionPrepare, job.Run)
	})
	return plan, err
}

// Missing compares the plan with the running packages and, before a reboot, with those
// that run after it.
func (h *Host) Missing(ctx context.Context, job strategy.Job) ([]message.Change, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	current, err := h.packages()
	if err != nil {
		return nil, err
	}
	u, err := h.upgrade()
	if err != nil {
		return nil, err
	}
	if job.Staged {
		current = current.with(u.Pending)
	}
	return strategy.Lacks(job.Plan, current), nil
}

// Upgrade carries out the plan, the kernel at the next boot. A second call upgrades
// again, as on a real host, and effects.log shows it.
func (h *Host) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	var u upgrade
	err := h.act(ctx, actionUpgrade, job.Progress, func(fault string) (err error) {
		u, err = h.begin(job.Run, job.Plan, fault != FaultNoReboot, false)
		return err
	})
	if err != nil {
		return 0, err
	}
	return u.outcome(), nil
}

// begin carries out a plan: it records the upgrade, or the rollback of one, before its effect.
func (h *Host) begin(run uint64, plan message.ChangeSet, reboot, isRollback bool) (upgrade, error) {
	current, err := h.packages()
	if err != nil {
		return upgrade{}, err
	}
	bootID, err := h.BootID()
	if err != nil {
		return upgrade{}, err
	}
	u := newUpgrade(run, bootID, current, plan, reboot)
	u.IsRollback = isRollback
	if u.Earlier, err = h.count(u.action(), run); err != nil {
		return upgrade{}, err
	}
	if err := h.writeUpgrade(u); err != nil {
		return upgrade{}, err
	}
	if err := h.record(u.action(), run); err != nil {
		return upgrade{}, err
	}
	return u, h.settle()
}

// PrepareRollback returns what undoes the plan of an earlier run.
func (h *Host) PrepareRollback(ctx context.Context, job strategy.Job) (plan message.ChangeSet, err error) {
	err = h.act(ctx, actionPrepare, job.Progress, func(string) error {
		current, err := h.packages()
		if err != nil {
			return err
		}
		u, err := h.upgrade()
		if err != nil {
			return err
		}
		reversed := message.ChangeSet{Changes: strategy.Reversed(job.Plan.Changes)}
		// A kernel that waits for its boot is undone as well.
		differs := append(strategy.Lacks(reversed, current), strategy.Lacks(reversed, current.with(u.Pending))...)
		undo := strategy.ToUndo(job.Plan.Changes, differs)
		if plan = undo.Plan(job.Progress); changesKernel(plan) {
			plan.Reboot = rebootReason
		}
		return h.record(actionPrepare, job.Run)
	})
	return plan, err
}

// Resume finds out from effects.log whether the upgrade of the run has happened.
func (h *Host) Resume(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	outcome := strategy.NotDone
	err := h.act(ctx, actionResume, job.Progress, func(string) error {
		if err := h.settle(); err != nil {
			return err
		}
		u, err := h.upgrade()
		if err != nil {
			return err
		}
		done, err := h.happened(u, job.Run)
		if done {
			outcome = u.outcome()
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return outcome, nil
}

// Verify checks that exactly the packages of the run's upgrade run.
func (h *Host) Verify(ctx context.Context, job strategy.Job) error {
	return h.act(ctx, actionVerify, job.Progress, func(string) error {
		u, err := h.upgrade()
		if err != nil {
			return err
		}
		done, err := h.happened(u, job.Run)
		if err != nil {
			return err
		}
		if !done {
			return fmt.Errorf("run %d has not upgraded this host", job.Run)
		}
		current, err := h.packages()
		if err != nil {
			return err
		}
		return u.missing(current)
	})
}

// Rollback restores the packages from before the run's upgrade, the kernel at the
// next boot, which it then requires. If the run has not upgraded the host, it does nothing. In a run
// that rolls back an earlier one it undoes the plan of that.
func (h *Host) Rollback(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	if job.RollbackOf != 0 {
		return h.rollBackRun(ctx, job)
	}
	outcome := strategy.Done
	err := h.act(ctx, actionRollback, job.Progress, func(string) error {
		if err := h.rollBack(job.Run); err != nil {
			return err
		}
		u, err := h.upgrade()
		if u.Run == job.Run && u.RolledBack && len(u.Pending) > 0 {
			outcome = strategy.RebootRequired
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return outcome, nil
}

// rollBackRun undoes the plan of an earlier run, once in a run.
func (h *Host) rollBackRun(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	var u upgrade
	err := h.act(ctx, actionRollback, job.Progress, func(string) (err error) {
		if err := h.settle(); err != nil {
			return err
		}
		if u, err = h.upgrade(); err != nil {
			return err
		}
		if done, err := h.happened(u, job.Run); done || err != nil {
			return err
		}
		if u.Run == job.Run && u.RolledBack {
			return strategy.Fail(message.Boot, fmt.Errorf("run %d has gone back, and the machine gave that up", job.Run))
		}
		u, err = h.begin(job.Run, message.ChangeSet{Changes: strategy.Reversed(job.Plan.Changes)}, true, true)
		return err
	})
	if err != nil {
		return 0, err
	}
	return u.outcome(), nil
}

func (h *Host) rollBack(run uint64) error {
	if err := h.settle(); err != nil {
		return err
	}
	u, err := h.upgrade()
	if err != nil {
		return err
	}
	done, err := h.happened(u, run)
	if err != nil || !done {
		return err
	}
	if err := h.restore(u); err != nil {
		return err
	}
	return h.record(actionRollback, run)
}

// Booted tells which kernel runs, and which one the machine gave up.
func (h *Host) Booted(ctx context.Context) (strategy.Boot, error) {
	if err := ctx.Err(); err != nil {
		return strategy.Boot{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	current, err := h.packages()
	if err != nil {
		return strategy.Boot{}, err
	}
	u, err := h.upgrade()
	return strategy.Boot{Running: current[kernel], Failed: u.GaveUp}, err
}

// Confirm forgets the kernel that the machine gave up.
func (h *Host) Confirm(ctx context.Context, boot strategy.Boot) error {
	if err := ctx.Err(); err != nil || boot.Failed == "" {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	u, err := h.upgrade()
	if err != nil || u.GaveUp != boot.Failed {
		return err
	}
	u.GaveUp = ""
	return h.writeUpgrade(u)
}

// parts is the number of parts of an action. Progress is reported after each.
const parts = 4

// act executes an action: it waits for the time of an action, then applies the effect,
// unless there is a fault. effect gets the fault and runs with mu held.
func (h *Host) act(ctx context.Context, action string, progress func(int, string), effect func(fault string) error) error {
	fault, err := h.fault(action)
	if err != nil {
		return err
	}
	if err := h.pass(ctx, action, progress); err != nil {
		return err
	}
	if err, fails := failure(action, fault); fails {
		return err
	}
	switch fault {
	case FaultHang:
		<-ctx.Done()
		return fmt.Errorf("%s hangs: %w", action, ctx.Err())
	case FaultCrash, FaultCrashBefore:
		return h.fall(ctx, action, Crashed)
	case FaultPowerOff:
		return h.fall(ctx, action, PoweredOff)
	}
	if err := h.locked(func() error { return effect(fault) }); err != nil {
		return fmt.Errorf("cannot %s: %w", action, err)
	}
	if fault == FaultCrashAfter {
		return h.fall(ctx, action, Crashed)
	}
	return nil
}

func (h *Host) fault(action string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	faults, err := h.faults()
	return faults[action], err
}

func (h *Host) locked(effect func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return effect()
}

// pass waits for the time of one action.
func (h *Host) pass(ctx context.Context, action string, progress func(int, string)) error {
	if h.options.ActionTime == 0 {
		return ctx.Err()
	}
	for part := 1; part <= parts; part++ {
		if err := h.options.Sleep(ctx, portion(int64(h.options.ActionTime), part)); err != nil {
			return err
		}
		progress(100*part/parts, action)
	}
	return nil
}
