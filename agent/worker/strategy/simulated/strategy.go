package simulated

import (
	"context"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// Detect reads every file of the host and returns what is wrong with them.
func (h *Host) Detect(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := h.locked(h.check); err != nil {
		return fmt.Errorf("cannot upgrade simulated host: %w", err)
	}
	return nil
}

// Versions returns the packages that run. A new kernel is among them after the
// boot.
func (h *Host) Versions(ctx context.Context) (map[string]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.packages()
}

// Prepare changes nothing but effects.log.
func (h *Host) Prepare(ctx context.Context, job strategy.Job) error {
	return h.act(ctx, actionPrepare, job.Progress, func(string) error {
		return h.record(actionPrepare, job.Run)
	})
}

// Upgrade raises every package by one step, the kernel at the next boot.
// Called again it upgrades again, as a real host would, and effects.log tells.
func (h *Host) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	var u upgrade
	err := h.act(ctx, actionUpgrade, job.Progress, func(fault string) (err error) {
		u, err = h.begin(job.Run, fault != FaultNoReboot)
		if err != nil {
			return err
		}
		if err := h.record(actionUpgrade, job.Run); err != nil {
			return err
		}
		return h.settle()
	})
	if err != nil {
		return 0, err
	}
	return u.outcome(), nil
}

// begin writes down what an upgrade is to do, ahead of it.
func (h *Host) begin(run uint64, reboot bool) (upgrade, error) {
	current, err := h.packages()
	if err != nil {
		return upgrade{}, err
	}
	bootID, err := h.BootID()
	if err != nil {
		return upgrade{}, err
	}
	earlier, err := h.count(actionUpgrade, run)
	if err != nil {
		return upgrade{}, err
	}
	u := plan(run, bootID, current, earlier, reboot)
	return u, h.writeUpgrade(u)
}

// Resume tells from effects.log whether the upgrade of the run took place.
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

// Verify checks that exactly what the upgrade of the run was to bring runs.
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

// Rollback brings back what ran before the upgrade of the run, the kernel at
// the next boot. Without such an upgrade there is nothing to do.
func (h *Host) Rollback(ctx context.Context, job strategy.Job) error {
	return h.act(ctx, actionRollback, job.Progress, func(string) error {
		if err := h.settle(); err != nil {
			return err
		}
		u, err := h.upgrade()
		if err != nil {
			return err
		}
		done, err := h.happened(u, job.Run)
		if err != nil || !done {
			return err
		}
		if err := h.restore(u); err != nil {
			return err
		}
		return h.record(actionRollback, job.Run)
	})
}
