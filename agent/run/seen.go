package run

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// Seen is what a controller knows besides the log when it asks for the next step.
// It says all that it knows: what the run knows already changes nothing.
type Seen struct {
	// Request is what somebody asks of the run; nil when nobody does.
	Request *Request
	// Deleted are the hosts that were deleted, and who has deleted each.
	Deleted map[string]string
	// JudgeAt is when the controller can tell again who is silent and what has
	// taken too long: before that it has not listened for long enough.
	JudgeAt time.Time
	// Silent are hosts that are not heard of, Heard hosts that are. Of a host that
	// is in neither nothing has changed since the run was told of it.
	Silent, Heard []string
	// Freeze is the freeze that is in force or comes next; nil when there is none.
	Freeze *message.Frozen
	// Hold is why no run may start a host now; nil when each may.
	Hold *message.Paused
	// Outcomes are those of tasks.
	Outcomes []message.Outcome
}

// Next returns what has to be appended to the log, or waited for, at a time.
// What people want comes first, also after the end of a run: what they ask, and
// the hosts that they have deleted. Then the run is told what it does not know
// yet, and then it goes on.
func (l *Ledger) Next(now time.Time, seen Seen) Step {
	if q := seen.Request; q != nil && l.Current() == nil && (q.Ask != Release || l.newest == nil) {
		return Step{Act: Refuse, Refused: &Refused{Message: "no run is under way"}}
	}
	if l.newest == nil {
		return Step{}
	}
	return l.newest.Next(now, seen)
}

// Next returns the next step of a run, as Ledger.Next does.
func (s *State) Next(now time.Time, seen Seen) Step {
	if seen.Request != nil {
		e, err := s.decide(*seen.Request)
		if err != nil {
			return Step{Act: Refuse, Refused: err}
		}
		return note(e)
	}
	if e := s.tellDeleted(seen.Deleted); e != nil {
		return note(e)
	}
	switch {
	case s.Over():
		return Step{}
	case now.Before(seen.JudgeAt):
		return Step{Until: seen.JudgeAt}
	}
	for _, news := range []func(Seen) message.Event{s.tellPresence, s.tellFreeze, s.tellHold, s.tellOutcome} {
		if e := news(seen); e != nil {
			return note(e)
		}
	}
	return s.proceed(now)
}

// tellDeleted returns the event of the hosts that were deleted and still matter, by
// whoever has deleted the first of them: the others' comes next. Nil when there
// are none.
func (s *State) tellDeleted(deleted map[string]string) message.Event {
	var hosts []string
	for host := range deleted {
		if s.Minds(host) {
			hosts = append(hosts, host)
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	slices.Sort(hosts)
	by := deleted[hosts[0]]
	return message.Deleted{Hosts: slices.DeleteFunc(hosts, func(host string) bool { return deleted[host] != by }), By: by}
}

// tellPresence returns the event of the hosts that are heard of again, or of those
// that have fallen silent; nil when the run knows of all of them.
func (s *State) tellPresence(seen Seen) message.Event {
	news := func(hosts []string, silent bool) []string {
		return slices.DeleteFunc(slices.Sorted(slices.Values(hosts)), func(host string) bool { return !s.Outdated(host, silent) })
	}
	if hosts := news(seen.Heard, false); len(hosts) > 0 {
		return message.Recovered{Hosts: hosts}
	}
	if hosts := news(seen.Silent, true); len(hosts) > 0 {
		return message.Silent{Hosts: hosts}
	}
	return nil
}

// Outdated reports whether a run has to be told that a host is silent, or that
// it is heard of. The silence of some hosts says nothing: of those that are no
// members, were left out, or are out of service anyway.
func (s *State) Outdated(host string, silent bool) bool {
	known, matters := s.silence(host)
	return known != silent && (known || matters)
}

// tellFreeze returns the event that has the run end with the next freeze, if that
// begins before its not-after. The log has the last word: the event bears its
// time, and changes nothing when the freeze is over by that.
func (s *State) tellFreeze(seen Seen) message.Event {
	if seen.Freeze == nil || !seen.Freeze.NotAfter.Before(s.NotAfter) {
		return nil
	}
	return *seen.Freeze
}

// tellHold returns the event that pauses the run for what holds up every run, or
// resumes it; nil when it is paused, or not, for what holds it up now. What
// somebody has paused is left to them.
func (s *State) tellHold(seen Seen) message.Event {
	hold, now := seen.Hold, s.Paused
	switch {
	case s.IsAborting():
	case now == nil && hold != nil:
		return *hold
	case now == nil || !message.GoesOn(now.By):
	case hold == nil || hold.By != now.By || hold.By == message.ByAgent && hold.Why != now.Why:
		return message.Resumed{By: now.By}
	}
	return nil
}

// tellOutcome returns the event of an outcome that is not on the log yet; nil when
// there is none that the run waits for.
func (s *State) tellOutcome(seen Seen) message.Event {
	for _, o := range seen.Outcomes {
		if s.Awaits(o) {
			return message.Ran{Outcome: o}
		}
	}
	return nil
}
