package run

import "fmt"

// Status is where a host of a run stands (AV-39).
type Status string

// The statuses of a host.
const (
	Pending       Status = "pending"
	HostPreparing Status = "preparing"
	Prepared      Status = "prepared"
	HostUpgrading Status = "upgrading"
	RebootPending Status = "reboot-pending"
	Rebooting     Status = "rebooting"
	Upgraded      Status = "upgraded"
	HostFailed    Status = "failed"
	Skipped       Status = "skipped"
	Unreachable   Status = "unreachable"
)

// transitions lists, for each status, those that may follow it. What is not
// listed cannot happen; a status without a row is final.
var transitions = map[Status][]Status{
	Pending:       {HostPreparing, Skipped},
	HostPreparing: {Prepared, HostFailed, Skipped},
	Prepared:      {HostUpgrading, Skipped},
	HostUpgrading: {Upgraded, RebootPending, HostFailed},
	RebootPending: {Rebooting, HostFailed},
	Rebooting:     {Upgraded, HostFailed},
}

// Final reports whether a host stays in this status for the rest of the run.
func (s Status) Final() bool { return len(transitions[s]) == 0 }

// OutOfService reports whether a host in this status counts as down.
func (s Status) OutOfService() bool {
	return s == HostUpgrading || s == RebootPending || s == Rebooting
}

// mayBecome reports whether to may follow s.
func (s Status) mayBecome(to Status) bool {
	for _, allowed := range transitions[s] {
		if allowed == to {
			return true
		}
	}
	return false
}

func illegal(host string, from, to Status) error {
	return fmt.Errorf("host %s cannot go from %s to %s", host, from, to)
}
