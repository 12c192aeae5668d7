package decide

// Do is the next action of the worker.
type Do string

// The actions. Each value is also the action's label.
const (
	Nothing Do = "nothing"
	// DoGetRelease gets the text of the release that the run installs.
	DoGetRelease Do = "get release"
	DoPrepare    Do = "prepare"
	DoUpgrade    Do = "upgrade"
	DoResume     Do = "resume"
	DoVerify     Do = "verify"
	DoRollback   Do = "rollback"
	// DoReboot asks the machine for the reboot.
	DoReboot Do = "reboot"
	// DoAwaitReboot waits for a reboot that the machine was asked for.
	DoAwaitReboot Do = "await reboot"
	// DoMissReboot records that it is too late to ask for the reboot.
	DoMissReboot Do = "miss reboot"
	// DoBooted records that the reboot has happened.
	DoBooted Do = "booted"
	// DoAwaitRetry waits until an action that failed is taken again.
	DoAwaitRetry Do = "await retry"
	// DoAwaitIdle waits until a host that is busy may be upgraded.
	DoAwaitIdle Do = "await idle"
	DoReply     Do = "reply"
)

// The actions that only the lease calls for.
const (
	// DoWait waits until the state of the lease changes.
	DoWait Do = "wait"
	// DoTakeOver writes the first journal of a host that has none, or a new
	// journal after another worker has held the lease.
	DoTakeOver Do = "take over"
)

// The actions that neither the journal nor the lease calls for.
const (
	// DoAccept ends the trial of versions that a person has accepted.
	DoAccept Do = "accept"
	// DoConfirm asks which system has started, and confirms it.
	DoConfirm Do = "confirm"
	// DoSettle confirms the system on which checks have passed, DoDrop leaves such checks
	// without an outcome: the site asks for them again.
	DoSettle Do = "settle"
	DoDrop   Do = "drop"
	// DoInterrupted counts that the worker has ended in the midst of an action.
	DoInterrupted Do = "interrupted"
	// DoNote only writes the state.
	DoNote Do = "note"
	// DoRetire ends the worker, for the next one to take its place.
	DoRetire Do = "retire"
)

// isStrategy reports whether an action is a call of the strategy.
func isStrategy(do Do) bool {
	switch do {
	case DoPrepare, DoUpgrade, DoResume, DoVerify, DoRollback:
		return true
	default:
		return false
	}
}
