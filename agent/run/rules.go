package run

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// rules are the policy of a run, and the tasks and time limits that follow from it.
// They never change.
type rules struct {
	rollout.Resolved
	// members counts the members of the run.
	members int
	// noReboot says why each host that is not rebooted is not.
	noReboot map[string]string
	// patience is how long the run waits for hosts that are late with their prepare;
	// waitsForAll means that it waits for each, as every run did that was opened by a
	// version without patience: a run keeps the rollout that it was opened with.
	patience    time.Duration
	waitsForAll bool
	// validFor is how long the result of checks is valid.
	validFor time.Duration
}

// baseValidity is how long the result of checks is valid, in addition to the time
// that checks take.
const baseValidity = 10 * time.Minute

// newRules makes the rules of a run of so many members that may last so long.
func newRules(p rollout.Resolved, members int, lasts time.Duration) rules {
	r := rules{
		Resolved: p, members: members, noReboot: map[string]string{}, waitsForAll: p.PreparePatience == "",
		patience: max(0, min(p.PreparePatience.Duration(), lasts/shareOfPatience)),
	}
	for _, n := range p.NoReboot {
		r.noReboot[n.Host] = n.Reason
	}
	// The time that other checks take does not count: otherwise the checks before a
	// host and those of the fleet could invalidate each other for ever.
	r.validFor = baseValidity + r.task(message.BeforeHost).Limit() + r.task(message.Fleet).Limit()
	return r
}

// shareOfPatience is the part of its time that a run waits at most for hosts that are late:
// a tenth.
const shareOfPatience = 10

// checksHosts reports whether each host is checked after its upgrade.
func (r *rules) checksHosts() bool { return len(r.Checks.AfterHost) > 0 }

// stillCounts reports whether the result of checks that have passed is still valid.
func (r *rules) stillCounts(passed, now time.Time) bool {
	return !passed.IsZero() && now.Sub(passed) <= r.validFor
}

// task makes a task of a kind, without its run and its host.
func (r *rules) task(kind message.TaskKind) message.Task { return kind.Of(&r.Rollout) }

// limit is the longest that the run waits for something.
func (r *rules) limit(a message.Awaited) time.Duration {
	switch a.Action {
	case message.Prepare:
		return r.Timeouts.Prepare.Duration()
	case message.Upgrade:
		return r.Timeouts.Upgrade.Duration()
	case message.Reboot:
		return r.Timeouts.Reboot.Duration()
	}
	return r.taskLimit(a.Task)
}

// taskLimit is the longest wait for the outcome of a task. A task at the site may
// have to wait until the tasks of other hosts there have ended.
func (r *rules) taskLimit(kind message.TaskKind) time.Duration {
	t := r.task(kind)
	if t.OnSite() {
		return t.Limit() * time.Duration(1+(r.members-1)/message.SiteTasks)
	}
	return t.Limit()
}

// proof returns the kind of the checks that have to pass after a host has failed;
// empty when there are no such checks, or nothing was done to the host.
func (r *rules) proof(m *member) message.TaskKind {
	switch {
	case m.phase <= ready && m.Owes().Checks != "":
		return m.Owes().Checks // Since an earlier run.
	case m.phase == checkingBefore:
		return message.BeforeHost
	case m.HasSlot() && r.checksHosts():
		return message.AfterHost
	}
	return ""
}
