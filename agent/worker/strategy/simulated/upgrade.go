package simulated

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// upgrade is the record of the last upgrade, written before its effect. The
// effect itself is its line in effects.log: where that line stands the upgrade
// has happened, whatever else a crash left undone.
type upgrade struct {
	Run    uint64 `json:"run"`
	BootID string `json:"boot-id"`
	// From and Running are the packages that run before and after.
	From    packages `json:"from"`
	Running packages `json:"running"`
	// Pending becomes current at the next boot.
	Pending packages `json:"pending,omitempty"`
	// Earlier counts the upgrades of this run that had happened before.
	Earlier int `json:"earlier"`
	// Settled tells that the package database holds Running, or what has come
	// of it since.
	Settled bool `json:"settled"`
	// RolledBack tells that the effect was undone.
	RolledBack bool `json:"rolled-back,omitempty"`
}

// upgrade reads the record; a host that was never upgraded has the zero one.
func (h *Host) upgrade() (upgrade, error) {
	var u upgrade
	err := h.decode(upgradeFile, &u, format.Simulated.Decode)
	if errors.Is(err, fs.ErrNotExist) {
		return upgrade{}, nil
	}
	return u, err
}

func (h *Host) writeUpgrade(u upgrade) error {
	data, err := format.Simulated.Encode(u)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", h.path(upgradeFile), err)
	}
	return durable.WriteFile(h.path(upgradeFile), append(data, '\n'), 0o644)
}

// plan is the record of an upgrade that has not happened yet.
func plan(run uint64, bootID string, current packages, earlier int, reboot bool) upgrade {
	running, pending := current.raised(), packages(nil)
	if reboot {
		running, pending = current.after(running)
	}
	return upgrade{Run: run, BootID: bootID, From: current, Running: running, Pending: pending, Earlier: earlier}
}

// outcome tells what an upgrade that has happened came to.
func (u upgrade) outcome() strategy.Outcome {
	if len(u.Pending) > 0 {
		return strategy.RebootRequired
	}
	return strategy.Done
}

// happened reports whether the upgrade of a run has had its effect, and still
// has it.
func (h *Host) happened(u upgrade, run uint64) (bool, error) {
	if u.Run != run || u.From == nil || u.RolledBack {
		return false, nil
	}
	count, err := h.count(actionUpgrade, run)
	return count > u.Earlier, err
}

// settle finishes what a crash cut off between the line in effects.log and the
// package database. It is called with mu held, or before anyone has the host.
func (h *Host) settle() error {
	u, err := h.upgrade()
	if err != nil || u.Settled {
		return err
	}
	done, err := h.happened(u, u.Run)
	if err != nil || !done {
		return err
	}
	if err := h.write(packagesFile, u.Running); err != nil {
		return err
	}
	u.Settled = true
	return h.writeUpgrade(u)
}

// restore undoes an upgrade as far as that goes without a boot.
func (h *Host) restore(u upgrade) error {
	current, err := h.packages()
	if err != nil {
		return err
	}
	running, pending := current.after(u.From)
	if err := h.write(packagesFile, running); err != nil {
		return err
	}
	u.Pending, u.RolledBack = pending, true
	return h.writeUpgrade(u)
}

// missing tells how the packages that run differ from those that the upgrade
// was to bring; nil when they do not.
func (u upgrade) missing(current packages) error {
	for name, version := range u.Running.with(u.Pending) {
		if current[name] != version {
			return fmt.Errorf("%s %s does not run, but %s; it should after the upgrade of run %d", name, version, current[name], u.Run)
		}
	}
	if maps.Equal(u.Running.with(u.Pending), current) {
		return nil
	}
	return fmt.Errorf("there are packages that the upgrade of run %d did not bring", u.Run)
}
