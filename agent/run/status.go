package run

// Status is where a host of a run stands (AV-39), as people see it.
type Status string

// The statuses of a host.
const (
	Pending       Status = "pending"
	HostPreparing Status = "preparing"
	Prepared      Status = "prepared"
	Draining      Status = "draining"
	HostUpgrading Status = "upgrading"
	RebootPending Status = "reboot-pending"
	Rebooting     Status = "rebooting"
	Checking      Status = "checking"
	Upgraded      Status = "upgraded"
	HostFailed    Status = "failed"
	Skipped       Status = "skipped"
	Unreachable   Status = "unreachable"
)

// Final reports whether a host stays in this status for the rest of the run.
func (s Status) Final() bool {
	return s == Upgraded || s == HostFailed || s == Skipped || s == Unreachable
}

// step is what a host has to come through next. A host that has its final
// status may still have to be undrained.
type step int

const (
	// unasked is before its prepare, preparing before its answer to that.
	unasked step = iota
	preparing
	// idle is prepared and before its turn.
	idle
	// checkingBefore is before the outcome of the checks before it, ready
	// before its slot; one that is ready for too long is checked anew.
	checkingBefore
	ready
	// draining is before the outcome of the drain hook, drained before the
	// upgrade is sent.
	draining
	drained
	upgrading
	// rebootDue is before the reboot is sent.
	rebootDue
	rebooting
	checkingAfter
	undraining
	// done has nothing more to come, but for what the host owes.
	done
)

// moves lists, for each step, those that may follow it. What is not listed
// cannot happen. Every step but done may be followed by done.
var moves = map[step][]step{
	unasked:        {preparing},
	preparing:      {idle},
	idle:           {checkingBefore, draining, upgrading},
	checkingBefore: {idle, ready},
	ready:          {idle, checkingBefore, draining, upgrading},
	draining:       {drained, undraining},
	drained:        {upgrading, undraining},
	upgrading:      {rebootDue, checkingAfter, undraining},
	rebootDue:      {rebooting, undraining},
	rebooting:      {checkingAfter, undraining},
	checkingAfter:  {undraining},
}

// mayBecome reports whether to may follow s.
func (s step) mayBecome(to step) bool {
	if to == done {
		return s != done
	}
	for _, allowed := range moves[s] {
		if allowed == to {
			return true
		}
	}
	return false
}

// statuses are what people see of a host at a step.
var statuses = map[step]Status{
	unasked: Pending, preparing: HostPreparing, idle: Prepared, checkingBefore: Checking, ready: Checking,
	draining: Draining, drained: Draining, upgrading: HostUpgrading, rebootDue: RebootPending, rebooting: Rebooting,
	checkingAfter: Checking, undraining: Checking,
}
