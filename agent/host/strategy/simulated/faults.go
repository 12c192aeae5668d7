package simulated

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// The actions that can have a fault, the keys of faults.json.
const (
	actionPrepare  = "prepare"
	actionUpgrade  = "upgrade"
	actionReboot   = "reboot"
	actionVerify   = "verify"
	actionResume   = "resume"
	actionRollback = "rollback"
)

// actionBoot is the effect of Boot. It has no fault.
const actionBoot = "boot"

var faultyActions = []string{actionPrepare, actionReboot, actionResume, actionRollback, actionUpgrade, actionVerify}

// The faults, the values of faults.json.
const (
	// FaultFail makes the action fail without an effect; "fail: TEXT" makes it
	// fail with that text, and "fail-CLASS" or "fail-CLASS: TEXT" with a class, such as
	// "fail-space: no room in /boot".
	FaultFail = "fail"
	// FaultHang makes the action hang, without an effect.
	FaultHang = "hang"
	// FaultCrash is FaultCrashBefore.
	FaultCrash = "crash"
	// FaultCrashBefore crashes the host before the effect of the action. A crash
	// happens once: the fault is removed from faults.json first.
	FaultCrashBefore = "crash-before"
	// FaultCrashAfter crashes the host after the effect, before the answer.
	FaultCrashAfter = "crash-after"
	// FaultPowerOff turns the machine off before the effect of the action, once. It stays off
	// until its supervisor is started again.
	FaultPowerOff = "power-off"
	// FaultFallBack makes the machine give the upgraded system up in its next boot, and
	// go back to the one before by itself. It is a fault of reboot, and happens once.
	FaultFallBack = "fall-back"
	// FaultNoReboot makes upgrade activate the kernel without a reboot.
	FaultNoReboot = "no-reboot"
)

var knownFaults = []string{FaultFail, FaultHang, FaultCrash, FaultCrashBefore, FaultCrashAfter, FaultPowerOff}

// SetFaults replaces faults.json. It maps the actions prepare, upgrade, reboot,
// verify, resume and rollback to a fault. An action without a fault succeeds.
func (h *Host) SetFaults(faults map[string]string) error {
	if err := checkFaults(faults); err != nil {
		return fmt.Errorf("cannot set faults: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.writeFaults(faults)
}

func (h *Host) writeFaults(faults map[string]string) error {
	if faults == nil {
		faults = map[string]string{}
	}
	return h.write(faultsFile, faults)
}

// faults reads faults.json. Without the file there are no faults.
func (h *Host) faults() (map[string]string, error) {
	var faults map[string]string
	err := h.read(faultsFile, &faults)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := checkFaults(faults); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", h.path(faultsFile), err)
	}
	return faults, nil
}

func checkFaults(faults map[string]string) error {
	for _, action := range slices.Sorted(maps.Keys(faults)) {
		if !slices.Contains(faultyActions, action) {
			return fmt.Errorf("%q is not an action; use one of %s", action, strings.Join(faultyActions, ", "))
		}
		if err := checkFault(action, faults[action]); err != nil {
			return err
		}
	}
	return nil
}

func checkFault(action, fault string) error {
	_, fails := failure(action, fault)
	switch {
	case fails, slices.Contains(knownFaults, fault), fault == FaultNoReboot && action == actionUpgrade, fault == FaultFallBack && action == actionReboot:
		return nil
	case fault == FaultFallBack:
		return fmt.Errorf("%q of %q is a fault of reboot alone; use one of %s", fault, action, strings.Join(knownFaults, ", "))
	case fault == FaultNoReboot:
		return fmt.Errorf("%q of %q is a fault of upgrade alone; use one of %s", fault, action, strings.Join(knownFaults, ", "))
	default:
		return fmt.Errorf("%q of %q is not a fault; use one of %s, %q or %q", fault, action, strings.Join(knownFaults, ", "), FaultFail+": TEXT", FaultFail+"-CLASS: TEXT")
	}
}

// failure returns the error of a FaultFail; false for other faults.
func failure(action, fault string) (err error, fails bool) { //nolint:revive // the error is what is asked for
	kind, text, told := strings.Cut(fault, ": ")
	if err = errors.New(text); !told {
		err = fmt.Errorf("simulated failure of %s", action)
	}
	if kind == FaultFail {
		return err, true
	}
	name, classified := strings.CutPrefix(kind, FaultFail+"-")
	if class := message.Class(name); classified && class.Known() {
		return strategy.Fail(class, err), true
	}
	return nil, false
}

// fall removes the fault, so that it happens once, signals the supervisor that the host has
// crashed or is off, and blocks until the supervisor has stopped the worker.
func (h *Host) fall(ctx context.Context, action string, e Event) error {
	if err := h.forget(action); err != nil {
		return err
	}
	h.signal(e)
	<-ctx.Done()
	return fmt.Errorf("host %s in %s: %w", e, action, ctx.Err())
}

func (h *Host) forget(action string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	faults, err := h.faults()
	if err != nil {
		return err
	}
	delete(faults, action)
	return h.writeFaults(faults)
}
