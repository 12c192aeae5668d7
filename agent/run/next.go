package run

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// Act is what a step asks for.
type Act int

// The acts of a step.
const (
	// Wait asks for nothing before Step.Until or the next record.
	Wait Act = iota
	// Send asks for Step.Command to be appended to the log.
	Send
	// Note asks for Step.Event to be appended to the log. After a request it is
	// what that comes to.
	Note
	// Refuse answers a request with Step.Refused.
	Refuse
)

// Step is what has to happen next.
type Step struct {
	Act     Act
	Command message.Command
	Event   message.Event
	// Refused says what stands in the way of a request: it is a *Refused.
	Refused error
	// Until is when to ask again if no record comes before.
	Until time.Time
	// Fleet is the task at the site that a Wait waits for, not before FleetFrom;
	// nil when there is none.
	Fleet     *message.Task
	FleetFrom time.Time
}

// proceed returns the next step of a run that knows all (AV-59 to AV-68): prepare
// everybody; then stage by stage take hosts out of service, as many at once as
// the stage allows, upgrade and reboot them, and put them back; and end.
func (s *State) proceed(now time.Time) Step {
	result, ends := s.ending(now)
	if s.Phase == Open {
		return s.prepare(now, result, ends)
	}
	e, until := s.overdue(now)
	switch {
	case e != nil:
		return note(e)
	case s.done(result, ends):
		return s.end()
	case ends:
		return s.wind(now, result, until)
	}
	if step, some := s.goOn(); some {
		return step
	}
	step := s.begin(now)
	step.Until = sooner(sooner(step.Until, until), s.NotAfter)
	return step
}

// done reports whether the run has nothing left to do. Whoever notices that
// after not-after only does not make it late.
func (s *State) done(result Result, ends bool) bool {
	last := &s.stages[len(s.stages)-1]
	if s.current+1 < len(s.stages) || last.left > 0 || s.underWay > 0 {
		return false
	}
	return !ends || result == TimedOut && last.doneAt.Before(s.NotAfter)
}

// prepare begins a run, if there is anybody to prepare.
func (s *State) prepare(now time.Time, result Result, ends bool) Step {
	hosts := s.namesAt(unasked)
	switch {
	case ends:
		return finish(result, s.why(result, now))
	case len(hosts) == 0:
		return s.end()
	}
	return send(message.Command{Action: message.Prepare, Hosts: hosts, NotAfter: s.NotAfter})
}

// goOn returns what has to be sent to a host that is out of service.
func (s *State) goOn() (Step, bool) {
	if i, some := s.front(rebootDue); some {
		return send(message.Command{Action: message.Reboot, Host: s.members[i].Name}), true
	}
	if i, some := s.front(drained); some {
		return send(message.Command{Action: message.Upgrade, Host: s.members[i].Name}), true
	}
	return Step{}, false
}

// begin starts the next host, or says until when none may start.
func (s *State) begin(now time.Time) Step {
	if s.blocker(now) != nothing {
		return Step{Until: s.unblocks(now)}
	}
	if task, wanted := s.fleetTask(now); wanted {
		step := Step{Until: s.unblocks(now), Fleet: &task, FleetFrom: s.fleetFrom()}
		if now.Before(step.FleetFrom) {
			step.Until = sooner(step.Until, step.FleetFrom)
		}
		return step
	}
	i := s.next()
	if s.unchecked(i, now) {
		return note(message.Turn{Host: s.members[i].Name})
	}
	return s.takeOut(i)
}

// next is the host that starts next, while nothing keeps it from that: a host that
// has passed its checks, or else the first candidate.
func (s *State) next() int {
	i, some := s.front(ready)
	if !some || !s.mayTake(i) {
		i, _ = s.upNext()
	}
	return i
}

// unchecked reports whether the checks before a host have yet to pass, or to
// pass anew.
func (s *State) unchecked(i int, now time.Time) bool {
	m := &s.members[i]
	return len(s.policy.Checks.BeforeHost) > 0 && (m.step != ready || !s.stillCounts(m.passedAt, now))
}

// takeOut gives a host its slot, last of all that comes before its upgrade.
func (s *State) takeOut(i int) Step {
	if s.policy.Hooks.Drain != nil || s.policy.Hooks.Undrain != nil {
		return note(message.Slot{Host: s.members[i].Name})
	}
	return send(message.Command{Action: message.Upgrade, Host: s.members[i].Name})
}

func (s *State) fleetFrom() time.Time {
	if s.fleet.ranAt.IsZero() {
		return time.Time{}
	}
	return s.fleet.ranAt.Add(recheck)
}

func send(c message.Command) Step { return Step{Act: Send, Command: c} }

func note(e message.Event) Step { return Step{Act: Note, Event: e} }

func finish(result Result, reason string) Step {
	return note(message.Finished{Result: string(result), Reason: message.CleanText(reason)})
}

// end finishes a run that has nothing left to do. One in which hosts failed and
// none was upgraded has failed, whatever the rollout does at a failure.
func (s *State) end() Step {
	reason := fmt.Sprintf("%d of %d hosts upgraded", s.statuses[Upgraded], len(s.members))
	if s.statuses[Upgraded] == len(s.members) {
		return finish(Completed, reason)
	}
	if s.statuses[HostFailed] > 0 {
		reason += "; failed: " + s.names(func(st Status) bool { return st == HostFailed })
	}
	if s.statuses[HostFailed]+s.statuses[Upgraded] < len(s.members) {
		reason += "; left out: " + s.names(func(st Status) bool { return st != Upgraded && st != HostFailed })
	}
	if s.statuses[Upgraded] == 0 && s.statuses[HostFailed] > 0 {
		return finish(Failed, reason)
	}
	return finish(Partial, reason)
}
