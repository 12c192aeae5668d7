package run

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// awaited are the steps that wait for something, and what that is: the reply
// to a command, or the outcome of a task.
var awaited = []struct {
	step   step
	action message.Action
	task   message.TaskKind
}{
	{preparing, message.Prepare, ""},
	{checkingBefore, "", message.BeforeHost},
	{draining, "", message.Drain},
	{upgrading, message.Upgrade, ""},
	{rebooting, message.Reboot, ""},
	{checkingAfter, "", message.AfterHost},
	{undraining, "", message.Undrain},
}

// limit is the longest wait at a step.
func (s *State) limit(action message.Action, task message.TaskKind) time.Duration {
	switch action {
	case message.Prepare:
		return s.policy.Timeouts.Prepare.Duration()
	case message.Upgrade:
		return s.policy.Timeouts.Upgrade.Duration()
	case message.Reboot:
		return s.policy.Timeouts.Reboot.Duration()
	}
	return s.taskLimit(task)
}

// taskLimit is the longest wait for the outcome of a task. What is run at the
// site may have to wait for its place there, once for each hook before it.
func (s *State) taskLimit(kind message.TaskKind) time.Duration {
	t := s.task(kind)
	if t.OnSite() {
		return t.Limit() * time.Duration(1+(len(s.members)-1)/message.SiteTasks)
	}
	return t.Limit()
}

// overdue returns the event that gives up what has taken too long; false and
// when to ask again when nothing has.
func (s *State) overdue(now time.Time) (e message.Event, until time.Time, some bool) {
	for _, a := range awaited {
		since, waits := s.longest(a.step)
		if !waits {
			continue
		}
		limit := s.limit(a.action, a.task)
		if end := since.Add(limit); now.Before(end) {
			until = sooner(until, end)
			continue
		}
		if a.step == preparing {
			return message.Event{Event: message.GaveUp, Action: a.action, Hosts: s.unanswering()}, time.Time{}, true
		}
		return s.giveUp(a.step, now.Add(-limit)), time.Time{}, true
	}
	return message.Event{}, until, false
}

// longest is since when a host has been at a step; false when none is.
func (s *State) longest(at step) (time.Time, bool) {
	if at == preparing {
		return s.sentAt, s.unprepared > 0
	}
	if queue := s.queues[at]; len(queue) > 0 {
		return queue[0].since, true
	}
	return time.Time{}, false
}

// unanswering names the hosts that have yet to answer prepare, or to be asked.
func (s *State) unanswering() []string { return append(s.namesAt(unasked), s.namesAt(preparing)...) }

// ends is why hosts are given up that have not taken too long.
const ends = "the run ends"

// giveUp returns the event that gives up the hosts that came to a step before
// a time; the zero time means all of them, because the run ends.
func (s *State) giveUp(at step, before time.Time) message.Event {
	e := message.Event{Event: message.GaveUp, Hosts: s.all(at, before)}
	if before.IsZero() {
		e.Reason = ends
	}
	for _, a := range awaited {
		if a.step == at {
			e.Action, e.Task = a.action, a.task
		}
	}
	switch at {
	case ready:
		e.Task = message.BeforeHost
	case drained:
		e.Task = message.Drain
	case rebootDue:
		e.Action = message.Reboot
	}
	return e
}

// dropped takes in that one host is waited for no longer. Why follows from
// where it stands. False means that nobody waits for it there.
func (s *State) dropped(i int, e message.Event, at time.Time) bool {
	m := &s.members[i]
	switch {
	case e.Action == message.Prepare && m.step <= preparing && s.ID != 0:
		s.unanswered(i, at)
	case e.Action.Known() && m.Owes.Answer == "" && m.asked() == e.Action && m.step != preparing:
		s.lost(i, e, at)
	case e.Action == message.Reboot && m.step == rebootDue && e.Reason != "":
		s.fail(i, "the run ended before it was rebooted", at)
	case e.Reason != "" && m.turnsBack(e.Task):
		s.turnBack(i, at)
	case e.Task.Known() && m.wants() == e.Task && m.step != done:
		s.came(i, s.noOutcome(m, e), at)
	default:
		return false
	}
	return true
}

// turnsBack reports whether a host that is waited for no longer, for the sake
// of a task or of what follows it, is still before its upgrade.
func (m *member) turnsBack(task message.TaskKind) bool {
	switch task {
	case message.BeforeHost:
		return m.hasTurn()
	case message.Drain:
		return m.step == draining || m.step == drained
	case message.AfterHost, message.Undrain, message.Fleet:
	}
	return false
}

func (s *State) noOutcome(m *member, e message.Event) message.Outcome {
	t := s.task(e.Task)
	t.Host, t.Attempt = m.Name, m.attempt
	if e.Reason != "" {
		return t.Outcome(false, "no outcome yet: "+e.Reason)
	}
	return t.Outcome(false, fmt.Sprintf("no outcome within %s", s.taskLimit(e.Task)))
}

// unanswered takes in that a host has not answered prepare: it is not upgraded
// (AV-79).
func (s *State) unanswered(i int, at time.Time) {
	silent := s.members[i].IsSilent()
	text := fmt.Sprintf("it did not answer prepare within %s", s.policy.Timeouts.Prepare.Duration())
	if !silent {
		s.fail(i, text, at)
		return
	}
	s.edit(i, at, func(m *member) { m.ends(Unreachable, "it was silent; "+text, at) })
}

// lost takes in that a host has not answered in time: it failed, and may still
// be at work.
func (s *State) lost(i int, e message.Event, at time.Time) {
	s.edit(i, at, func(m *member) { m.Owes.Answer = e.Action })
	text := fmt.Sprintf("it did not answer %s within %s", e.Action, s.limit(e.Action, ""))
	if e.Reason != "" {
		text = fmt.Sprintf("it had not answered %s: %s", e.Action, e.Reason)
	}
	s.fail(i, text, at)
}

// turnBack takes in that the run ends before a host's upgrade.
func (s *State) turnBack(i int, at time.Time) {
	s.edit(i, at, func(m *member) {
		m.ends(Skipped, "the run ended before its upgrade", at)
		m.ranAt = time.Time{}
	})
}

func (s *State) overAt(now time.Time) bool { return !now.Before(s.NotAfter) }

func (s *State) namesAt(at step) []string {
	var names []string
	for i := range s.members {
		if s.members[i].step == at {
			names = append(names, s.members[i].Name)
		}
	}
	return names
}

// sooner is the earlier of two times, of which the zero one is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
