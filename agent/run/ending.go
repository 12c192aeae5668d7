package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// ending returns whether the run ends early, with which result: then no host starts
// any more.
func (s *State) ending(now time.Time) (Result, bool) {
	switch {
	case s.aborted != nil:
		return IsAborted, true
	case s.failures.halt != "":
		return Failed, true
	case s.overAt(now):
		return TimedOut, true
	case s.Phase == Open || s.isPreparing() || s.stages.current().left == 0:
		return "", false
	}
	return Partial, s.expired(now) || s.counts.underWay == 0 && !s.fits(now, s.needs())
}

// why is the reason of a run that ends early, for people.
func (s *State) why(result Result, now time.Time) string {
	g := s.stages.current()
	switch {
	case result == IsAborted:
		return fmt.Sprintf("aborted by %s: %s", s.aborted.By, s.aborted.Why)
	case result == TimedOut:
		return s.timedOut()
	case result == Failed && s.overAt(s.changed): // It was still at work then.
		return s.failures.halt + "; " + s.whyOver()
	case result == Failed:
		return s.failures.halt
	case s.expired(now):
		return fmt.Sprintf("stage %s was not approved within %s", g.Name, window.FormatDuration(g.ApprovalTimeout.Duration()))
	}
	if g.Step != nil {
		return fmt.Sprintf("step %s may take %s, so it would not be done by %s", g.Name, window.FormatDuration(s.needs()), stamp(s.NotAfter))
	}
	return fmt.Sprintf("hosts take %s, so none of %s left in stage %s would be done by %s",
		window.FormatDuration(s.durations.usual.Round(time.Second)), text.Count(g.left, "host", "hosts"), g.Name, stamp(s.NotAfter))
}

// expired reports whether the time to approve the current stage is up.
func (s *State) expired(now time.Time) bool {
	return !s.stages.current().approved() && !now.Before(s.stages.approvalEnds(s.NotAfter))
}

func (s *State) timedOut() string {
	reason := s.whyOver()
	// A wait that began later is not why: hosts were at work until then.
	if waiting, ok := s.waitingAt(s.NotAfter.Add(-1)); ok && waiting.Since.Before(s.NotAfter) {
		reason += "; the run was waiting for " + waiting.Detail
	}
	return reason
}

// enough stops the run when each host has answered prepare or its time is up, and too
// few hosts are prepared.
func (s *State) enough(at time.Time) {
	// Nobody waits for what an operator has left out.
	if n := s.counts.status[Prepared]; n+s.counts.status[Skipped] < s.rollout.MinPrepared {
		present, unprepared := s.unprepared()
		s.stop(fmt.Sprintf("%d of %s prepared, and min-prepared is %d; not prepared: %s",
			n, text.Count(present, "host", "hosts"), s.rollout.MinPrepared, list(unprepared)), at)
	}
}

// unprepared returns how many members were not left out, and
// those of them that are not prepared, each with the reason.
func (s *State) unprepared() (present int, names []string) {
	for i := range s.members {
		m := &s.members[i]
		if m.leftOut {
			continue
		}
		if present++; m.status() != Prepared {
			names = append(names, fmt.Sprintf("%s (%s)", m.Name, m.text))
		}
	}
	return present, names
}

// stop lets no further host start because of failures. After not-after the run ends
// anyway, as timed out.
func (s *State) stop(why string, at time.Time) {
	if !s.overAt(at) {
		s.failures.stop(why)
	}
}

// windDown ends a run early: hosts that have not begun are cancelled, hosts under way
// are waited for or cancelled, and drained hosts are undrained.
func (s *State) windDown(now time.Time, result Result, until time.Time) Decision {
	if s.atOnce || !now.Before(s.endsBy) {
		return s.cutOff(now, result)
	}
	for _, at := range []hostPhase{checkingBefore, ready, draining, drained} {
		if _, some := s.queues.front(at); some {
			return note(s.cancelAll(at))
		}
	}
	silenced := s.aborted != nil || s.overAt(now)
	if i, some := s.queues.front(rebootDue); some {
		if silenced {
			return note(s.cancelAll(rebootDue))
		}
		return send(message.Command{Action: message.Reboot, Host: s.members[i].Name})
	}
	if s.overAt(now) && s.rollout.Overrun == rollout.StopHost {
		if e := s.stepUnanswered(); e != nil {
			return note(e)
		}
		for _, at := range []hostPhase{upgrading, rebooting, checkingAfter} {
			if _, some := s.queues.front(at); some {
				return note(s.cancelAll(at))
			}
		}
	}
	switch {
	case s.counts.underWay == 0:
		return finish(result, s.withOutOfService(s.why(result, now)))
	case s.overAt(now):
		return Decision{Until: times.Sooner(until, s.endsBy)}
	}
	return Decision{Until: times.Sooner(until, s.NotAfter)}
}

// EndsBy is when the run ends at the latest, whatever its hosts do. A run that is being
// aborted waits for what each host under way is at, and then for its checks and its
// undrain hook.
func (s *State) EndsBy() time.Time {
	if s.aborted == nil {
		return s.endsBy
	}
	last := s.aborted.At
	for i := range s.members {
		if m := &s.members[i]; m.underWay() {
			last = times.Later(last, s.doneBy(m))
		}
	}
	if t, underWay := s.stepTask(); underWay {
		last = times.Later(last, s.stepEnds(t))
	}
	return times.Sooner(last, s.endsBy)
}

// doneBy is when a host under way is done at the latest if it is sent no command.
func (s *State) doneBy(m *member) time.Time {
	at := m.since
	switch m.phase {
	case upgrading, rebooting:
		at = at.Add(s.rollout.limit(awaitedAt(m.phase)))
		if s.rollout.checksHosts() {
			at = at.Add(s.rollout.taskLimit(message.AfterHost))
		}
	case draining, checkingAfter:
		at = at.Add(s.rollout.limit(awaitedAt(m.phase)))
	case undraining: // Its drain hook may have to end first.
		at = times.Later(at, m.takenAt.Add(s.rollout.taskLimit(message.Drain)))
	}
	if m.Owes().Undrain {
		at = at.Add(s.rollout.taskLimit(message.Undrain))
	}
	return at
}

// cutOff ends a run whose time is up for good: hosts under way are left as they are,
// out of service.
func (s *State) cutOff(now time.Time, result Result) Decision {
	for at := checkingBefore; at < done; at++ {
		if _, some := s.queues.front(at); some {
			e := s.cancelAll(at)
			e.AtOnce = true
			return note(e)
		}
	}
	if e := s.stepUnanswered(); e != nil {
		return note(e)
	}
	return finish(result, s.withOutOfService(s.why(result, now)))
}

// withOutOfService adds to the reason of a run that ends early the hosts that this run
// has touched and that stay out of service, unless the reason tells of them already.
func (s *State) withOutOfService(reason string) string {
	var out []string
	for i := range s.members {
		m := &s.members[i]
		if entry := m.Name + " (" + m.Reason() + ")"; !m.takenAt.IsZero() && m.HasSlot() && !strings.Contains(reason, entry) {
			out = append(out, entry)
		}
	}
	if len(out) == 0 {
		return reason
	}
	return reason + "; still out of service: " + list(out)
}
