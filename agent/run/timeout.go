package run

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// awaited are the phases in which the run waits for a host, and what it waits for.
var awaited = []struct {
	phase hostPhase
	message.Awaited
}{
	{preparing, message.Awaited{Action: message.Prepare}},
	{checkingBefore, message.Awaited{Task: taskAt[checkingBefore]}},
	{draining, message.Awaited{Task: taskAt[draining]}},
	{upgrading, message.Awaited{Action: message.Upgrade}},
	{rebooting, message.Awaited{Action: message.Reboot}},
	{checkingAfter, message.Awaited{Task: taskAt[checkingAfter]}},
	{undraining, message.Awaited{Task: taskAt[undraining]}},
}

// overdue returns the event of the hosts, or of the step, whose time is up; nil, and when to look
// again, when there are none.
func (s *State) overdue(now time.Time) (e message.Event, until time.Time) {
	for _, a := range awaited {
		since, waits := s.longest(a.phase)
		if !waits {
			continue
		}
		limit := s.rollout.limit(a.Awaited)
		if end := since.Add(limit); now.Before(end) {
			until = times.Sooner(until, end)
			continue
		}
		hosts := s.queues.hosts(s.members, a.phase, now.Add(-limit))
		if a.phase == preparing {
			hosts = s.members.awaited()
		}
		return message.Overdue{Hosts: hosts, Awaited: a.Awaited}, time.Time{}
	}
	e, ends := s.stepOverdue(now)
	return e, times.Sooner(until, ends)
}

// givesUp is when the run stops waiting for a host in its phase; zero when it does not
// wait for it.
func (s *State) givesUp(m *member) time.Time {
	since := m.since
	switch {
	case s.Over() || m.phase == unasked || m.phase == done:
		return time.Time{}
	case m.phase == preparing:
		since = s.sentAt
	}
	var leftOut time.Time
	if s.isLate(m) && m.Group == s.stages.index {
		leftOut = s.leavesOutLate()
	}
	for _, a := range awaited {
		if a.phase == m.phase {
			return times.Sooner(leftOut, times.Sooner(since.Add(s.rollout.limit(a.Awaited)), s.endsBy))
		}
	}
	return time.Time{}
}

// longest is since when the first host is in a phase; false when no host is.
func (s *State) longest(at hostPhase) (time.Time, bool) {
	if at == preparing {
		return s.sentAt, s.counts.unprepared > 0
	}
	if queue := s.queues[at]; len(queue) > 0 {
		return queue[0].since, true
	}
	return time.Time{}, false
}

// awaitedAt is what the run waits for in a phase, or has waited for just before it.
func awaitedAt(at hostPhase) message.Awaited {
	switch at {
	case ready:
		at = checkingBefore
	case drained:
		at = draining
	case rebootDue:
		at = rebooting
	}
	for _, a := range awaited {
		if a.phase == at {
			return a.Awaited
		}
	}
	return message.Awaited{}
}

// cancelAll returns the event that cancels all hosts in a phase, because the run ends.
func (s *State) cancelAll(at hostPhase) message.Cancelled {
	return message.Cancelled{Hosts: s.queues.hosts(s.members, at, time.Time{}), Awaited: awaitedAt(at)}
}

// timeOut stops waiting for a host that has taken too long. False means that the run
// does not wait for that.
func (s *State) timeOut(i int, a message.Awaited, at time.Time) bool {
	if !s.isMember(i) {
		return false
	}
	m := &s.members[i]
	switch {
	case a.Action == message.Prepare && m.phase <= preparing && s.ID != 0:
		s.notPrepared(i, at)
	case m.waitsFor(a.Action):
		s.noAnswer(i, a.Action, fmt.Sprintf("it did not answer %s within %s", a.Action, s.rollout.limit(a)), at)
	case a.Task.Known() && m.wants() == a.Task && m.phase != done:
		s.taskEnded(i, s.noOutcome(m, a.Task, fmt.Sprintf("no outcome within %s", window.FormatDuration(s.rollout.limit(a)))), at)
	default:
		return false
	}
	return true
}

// cancel stops waiting for a host because the run ends, or does not send it the next
// command. False means that neither is due.
func (s *State) cancel(i int, e message.Cancelled, at time.Time) bool {
	if !s.isMember(i) || !s.cancelIn(i, e.Awaited, at) {
		return false
	}
	if m := &s.members[i]; e.AtOnce && m.phase == undraining {
		s.taskEnded(i, s.noOutcome(m, message.Undrain, "the run ended before it was tried"), at)
	}
	return true
}

func (s *State) cancelIn(i int, a message.Awaited, at time.Time) bool {
	m := &s.members[i]
	switch {
	case m.waitsFor(a.Action):
		s.noAnswer(i, a.Action, fmt.Sprintf("it had not answered %s: the run ends", a.Action), at)
	case a.Action == message.Reboot && m.phase == rebootDue:
		s.fail(i, "the run ended before it was rebooted", at)
	case m.isBeforeUpgrade(a.Task):
		s.edit(i, at, func(m *member) {
			s.ends(i, Skipped, "the run ended before its upgrade", at)
			m.ranAt = time.Time{}
		})
	case a.Task.Known() && m.wants() == a.Task && m.phase != done:
		s.taskEnded(i, s.noOutcome(m, a.Task, "no outcome yet: the run ends"), at)
	default:
		return false
	}
	return true
}

// waitsFor reports whether the run waits for the host's answer to upgrade or
// reboot.
func (m *member) waitsFor(action message.Action) bool {
	return action.Known() && m.Owes().Answer == "" && m.asked() == action && m.phase != preparing
}

// isBeforeUpgrade reports whether a host is at a task before its upgrade, or between
// such a task and the next command.
func (m *member) isBeforeUpgrade(task message.TaskKind) bool {
	return task.Known() && m.phase < upgrading && awaitedAt(m.phase).Task == task
}

// noOutcome is the outcome that stands in place of one that did not come.
func (s *State) noOutcome(m *member, kind message.TaskKind, why string) message.Outcome {
	return s.hostTask(m, kind).Outcome(false, why)
}

// notPrepared notes that a host has not answered prepare: it is not upgraded.
func (s *State) notPrepared(i int, at time.Time) {
	silent := s.members[i].IsSilent()
	text := fmt.Sprintf("it did not answer prepare within %s", window.FormatDuration(s.rollout.Timeouts.Prepare.Duration()))
	s.noteUnmet(i, text)
	if !silent {
		s.fail(i, text, at)
		return
	}
	s.edit(i, at, func(*member) { s.ends(i, Unreachable, "it was silent; "+text, at) })
}

// noAnswer notes that a host has not answered in time: it failed, and may still
// be at work.
func (s *State) noAnswer(i int, action message.Action, text string, at time.Time) {
	s.serve(i, at, func() { s.roster.Await(i, action, at) })
	s.fail(i, text, at)
}
