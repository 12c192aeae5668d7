package exec

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// action is an action of a host and the name of its script.
type action string

const (
	actionVersions action = "versions"
	actionPlan     action = "plan"
	actionPrepare  action = "prepare"
	actionUpgrade  action = "upgrade"
	actionResume   action = "resume"
	actionMissing  action = "missing"
	actionVerify   action = "verify"
	actionRollback action = "rollback"
	// actionPrepareRollback is prepare of a run that rolls back an earlier one.
	actionPrepareRollback action = "prepare-rollback"
	actionBooted          action = "booted"
	actionConfirm         action = "confirm"
)

// required are the actions that must have a script.
var required = []action{actionVersions, actionUpgrade, actionResume}

var optional = []action{actionPlan, actionPrepare, actionMissing, actionVerify, actionRollback, actionPrepareRollback, actionBooted, actionConfirm}

// Actions are the names of all actions.
func Actions() []string {
	var names []string
	for _, a := range slices.Concat(required, optional) {
		names = append(names, string(a))
	}
	slices.Sort(names)
	return names
}

// printed returns how many bytes of a result an action may print to standard output; 0
// for one whose standard output is progress.
func (a action) printed() int64 {
	switch a {
	case actionVersions:
		return maxVersionsSize
	case actionPlan, actionMissing:
		return message.MaxPlanBody
	case actionBooted:
		return maxBootSize
	default:
		return 0
	}
}

// reboots reports whether an action may ask for a reboot.
func (a action) reboots() bool {
	return a == actionUpgrade || a == actionResume || a == actionRollback
}

// class is that of a failure of an action for which nothing else gives one.
func (a action) class() message.Class {
	switch a {
	case actionVerify:
		return message.Verify
	case actionBooted, actionConfirm:
		return message.Boot
	default:
		return message.Install
	}
}

// The exit statuses with a meaning.
const (
	statusDone           = 0
	statusFailed         = 1
	statusRebootRequired = 10
	statusNotDone        = 11
	// statusTransient is EX_TEMPFAIL of sysexits.h.
	statusTransient = 75
)

// outcome returns the meaning of an exit status for an action. ok is false if the
// action failed. An error means that there is nothing to do for this action, or a status
// that only other actions may return.
func outcome(a action, status int) (result strategy.Outcome, ok bool, err error) {
	switch {
	case status == statusDone:
		return strategy.Done, true, nil
	case status == statusRebootRequired && a.reboots():
		return strategy.RebootRequired, true, nil
	case status == statusRebootRequired:
		return 0, false, fmt.Errorf("exit status %d means that a reboot is required, which only upgrade, resume and rollback may return, not %s", status, a)
	case status != statusNotDone:
		return 0, false, nil
	}
	switch a {
	case actionResume:
		return strategy.NotDone, true, nil
	case actionPlan:
		return 0, false, strategy.ErrNoPlan
	case actionRollback, actionPrepareRollback:
		return 0, false, strategy.ErrNoRollback
	default:
		return 0, false, fmt.Errorf("exit status %d means not done, which only resume, rollback, prepare-rollback and plan may return, not %s", status, a)
	}
}

// Timeouts are the timeouts of the actions. Each applies twice: to the wait for an
// earlier script, and then to the script itself. Zero means the default.
type Timeouts struct {
	// Versions and Booted are 1 minute by default.
	Versions, Booted time.Duration
	// Plan, Missing, Verify and Confirm are 10 minutes by default.
	Plan, Missing, Verify, Confirm time.Duration
	// Prepare, which is also that of prepare-rollback, Upgrade and Rollback are 1 hour by default.
	Prepare, Upgrade, Rollback time.Duration
	// Resume is 1 hour by default, because it waits for an upgrade that still runs.
	Resume time.Duration
}

// WithLimit returns the timeouts for actions of a given length. Those that only look get at
// most their default, because a hanging script blocks the others, which wait for its
// lock.
func WithLimit(limit time.Duration) Timeouts {
	look := func(a action) time.Duration { return min(limit, defaultLimit(a)) }
	return Timeouts{
		Versions: look(actionVersions), Booted: look(actionBooted),
		Plan: look(actionPlan), Missing: look(actionMissing), Verify: look(actionVerify), Confirm: look(actionConfirm),
		Prepare: limit, Upgrade: limit, Resume: limit, Rollback: limit,
	}
}

// limits returns the timeouts with the defaults filled in.
func (t Timeouts) limits() (map[action]time.Duration, error) {
	limits := map[action]time.Duration{
		actionVersions: t.Versions, actionBooted: t.Booted,
		actionPlan: t.Plan, actionMissing: t.Missing, actionVerify: t.Verify, actionConfirm: t.Confirm,
		actionPrepare: t.Prepare, actionPrepareRollback: t.Prepare, actionUpgrade: t.Upgrade, actionResume: t.Resume, actionRollback: t.Rollback,
	}
	for a, limit := range limits {
		if limit < 0 {
			return nil, fmt.Errorf("the time limit of %s is %s; use more than 0s", a, limit)
		}
		if limit == 0 {
			limits[a] = defaultLimit(a)
		}
	}
	return limits, nil
}

func defaultLimit(a action) time.Duration {
	switch a {
	case actionVersions, actionBooted:
		return time.Minute
	case actionPlan, actionMissing, actionVerify, actionConfirm:
		return 10 * time.Minute
	default:
		return time.Hour
	}
}
