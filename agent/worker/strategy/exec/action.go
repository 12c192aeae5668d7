package exec

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// action is what a script does, and its file name.
type action string

const (
	actionVersions action = "versions"
	actionPrepare  action = "prepare"
	actionUpgrade  action = "upgrade"
	actionResume   action = "resume"
	actionVerify   action = "verify"
	actionRollback action = "rollback"
)

// required are the actions that have no meaning when their script is missing.
var required = []action{actionVersions, actionUpgrade, actionResume}

var optional = []action{actionPrepare, actionVerify, actionRollback}

// The exit statuses that have a meaning of their own.
const (
	statusDone           = 0
	statusRebootRequired = 10
	statusNotDone        = 11
)

// request is the JSON object on a script's standard input.
type request struct {
	Action   action    `json:"action"`
	Tenant   string    `json:"tenant,omitzero"`
	Host     string    `json:"host,omitzero"`
	Run      uint64    `json:"run,omitzero"`
	NotAfter time.Time `json:"not-after,omitzero"`
	BootID   string    `json:"boot-id,omitzero"`
}

func ask(a action, job strategy.Job) request {
	return request{a, job.Tenant, job.Host, job.Run, job.NotAfter.UTC(), job.BootID}
}

// outcome is what an exit status means for an action. An error is a status that
// has a meaning, but not for this action; ok is false when the script failed.
func outcome(a action, status int) (result strategy.Outcome, ok bool, err error) {
	switch {
	case status == statusDone:
		return strategy.Done, true, nil
	case status == statusRebootRequired && (a == actionUpgrade || a == actionResume):
		return strategy.RebootRequired, true, nil
	case status == statusNotDone && a == actionResume:
		return strategy.NotDone, true, nil
	case status == statusRebootRequired:
		return 0, false, fmt.Errorf("exit status %d means that a reboot is required, which only upgrade and resume may say, not %s", status, a)
	case status == statusNotDone:
		return 0, false, fmt.Errorf("exit status %d means not done, which only resume may say, not %s", status, a)
	default:
		return 0, false, nil
	}
}
