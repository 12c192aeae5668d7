package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/roster"
)

func (s *State) foldEvent(r message.Record) error {
	event, err := message.DecodeEvent(r.Body)
	if err != nil {
		return err
	}
	if s.Over() && event.Event != message.Released && (event.Event != message.Recovered || event.Reason != message.Deleted) {
		return fmt.Errorf("event %s belongs to no run under way", event.Event)
	}
	if fold := facts[event.Event]; fold != nil {
		return fold(s, event, r)
	}
	return fmt.Errorf("run %d is under way and cannot be %s", s.Key(), event.Event)
}

// facts are how each event of a run under way is taken in.
var facts = map[string]func(*State, message.Event, message.Record) error{
	message.Silent:    each((*State).fallSilent),
	message.Recovered: (*State).recover,
	message.Released:  (*State).released,
	message.Turn:      each(ofMembers((*State).turn)),
	message.Slot:      each(ofMembers((*State).slot)),
	message.Ran:       (*State).ran,
	message.GaveUp:    each(ofMembers((*State).dropped)),
	message.Approved:  (*State).approve,
	message.Paused:    (*State).pause,
	message.Resumed:   (*State).resume,
	message.Aborted:   (*State).abort,
	message.Frozen:    (*State).freeze,
	message.Finished:  (*State).finish,
}

// hostFact takes in an event of one host of the roster, and reports whether that
// changes anything.
type hostFact func(s *State, i int, e message.Event, at time.Time) bool

// ofMembers is a fact that members alone can have.
func ofMembers(fold hostFact) hostFact {
	return func(s *State, i int, e message.Event, at time.Time) bool { return s.isMember(i) && fold(s, i, e, at) }
}

// each takes in an event of several hosts: all of them, or none when one is not
// in the roster. It is an error when that changes none of them.
func each(fold hostFact) func(*State, message.Event, message.Record) error {
	return func(s *State, e message.Event, r message.Record) error {
		for _, host := range e.Hosts {
			if _, known := s.roster.Index(host); !known {
				return fmt.Errorf("%s is not in run %d", host, s.Key())
			}
		}
		changed := false
		for _, host := range e.Hosts {
			changed = fold(s, s.indexOf(host), e, r.Time) || changed
		}
		if !changed {
			return fmt.Errorf("event %s changes nothing for %s", e.Event, list(e.Hosts))
		}
		return nil
	}
}

// indexOf returns the index of a host that is in the roster.
func (s *State) indexOf(host string) int {
	i, _ := s.roster.Index(host)
	return i
}

// fallSilent has a host count as out of service. One that is being checked
// before its upgrade gives its turn back: it has it anew once it is heard of.
func (s *State) fallSilent(i int, _ message.Event, at time.Time) bool {
	if h := s.roster.Host(i); h.IsSilent() || h.Removed || h.Group == roster.NoGroup {
		return false
	}
	s.editHost(i, at, func(h *roster.Host) { h.Silent = at })
	if s.isMember(i) && s.members[i].hasTurn() {
		s.edit(i, at, func(m *member) { m.step, m.since, m.attempt, m.InHand = idle, at, m.attempt+1, false })
	}
	return true
}

// recover takes in that silent hosts were heard of again, or deleted.
func (s *State) recover(e message.Event, r message.Record) error {
	if e.Reason == message.Deleted {
		return each((*State).forget)(s, e, r)
	}
	return each((*State).hear)(s, e, r)
}

func (s *State) hear(i int, _ message.Event, at time.Time) bool {
	if !s.roster.Host(i).IsSilent() {
		return false
	}
	s.editHost(i, at, func(h *roster.Host) { h.Silent = time.Time{} })
	return true
}

// forget drops a host that was deleted: nobody waits for it any more, nor for
// its hook.
func (s *State) forget(i int, e message.Event, at time.Time) bool {
	if (!s.isMember(i) || s.members[i].step == done) && !s.counts(i) {
		return false
	}
	s.leaveBehind(i, leftBehind(e), at)
	return true
}

// released takes in that slots were freed by force.
func (s *State) released(e message.Event, r message.Record) error {
	for _, host := range e.Hosts {
		if err := s.refusesRelease(host); err != nil {
			return err
		}
	}
	return each((*State).release)(s, e, r)
}

func (s *State) release(i int, e message.Event, at time.Time) bool {
	s.leaveBehind(i, leftBehind(e), at)
	return true
}

// leftBehind says why nobody waits for a host any more.
func leftBehind(e message.Event) string {
	if e.Event == message.Released {
		return fmt.Sprintf("its slot was released by %s: %s", e.By, e.Why)
	}
	return "it was deleted"
}

// leaveBehind has a host hold no slot and take no further part. One that has
// its final status keeps it.
func (s *State) leaveBehind(i int, text string, at time.Time) {
	if !s.isMember(i) {
		s.editHost(i, at, (*roster.Host).Remove)
		return
	}
	s.fleet.stale()
	s.edit(i, at, func(m *member) {
		m.Remove()
		if m.final == "" {
			m.final, m.text, m.since = Skipped, text, at
		} else if m.final != Upgraded {
			m.text += "; " + text
		}
		m.step = done
	})
}

// turn has a host checked before anything else, also one whose checks have passed
// and count no more. One that is out of service stays so for its turn: it would
// need a slot at once.
func (s *State) turn(i int, _ message.Event, at time.Time) bool {
	if !s.mayHaveTurn(i) || s.move(i, checkingBefore, at) != nil {
		return false
	}
	s.edit(i, at, func(m *member) { m.InHand = m.Held() })
	return true
}

// slot takes a host out of service: it is drained next, if there is a hook for
// that, and will be undrained whatever happens.
func (s *State) slot(i int, _ message.Event, at time.Time) bool {
	if !s.mayHaveTurn(i) || s.move(i, draining, at) != nil {
		return false
	}
	s.takeSlot(i, at)
	s.edit(i, at, func(m *member) { m.Owes.Undrain = s.policy.Hooks.Undrain != nil })
	if s.policy.Hooks.Drain == nil {
		_ = s.move(i, drained, at)
	}
	return true
}

// mayHaveTurn reports whether a host is one that may have its turn.
func (s *State) mayHaveTurn(i int) bool {
	m := &s.members[i]
	return s.unprepared == 0 && m.stage == s.current && !m.IsSilent()
}

func (s *State) approve(e message.Event, r message.Record) error {
	if err := s.refusesApproval(e.Stage); err != nil {
		return err
	}
	for n := range s.stages {
		if g := &s.stages[n]; g.Name == e.Stage {
			g.approvedAt, s.changed = r.Time, r.Time
			break
		}
	}
	return nil
}

func (s *State) pause(e message.Event, r message.Record) error {
	if s.Paused != nil {
		return fmt.Errorf("run %d is paused already, by %s", s.Key(), s.Paused.By)
	}
	s.Paused, s.changed = &Pausing{By: e.By, Why: e.Why, At: r.Time}, r.Time
	return nil
}

// resume lets the run go on. A person who resumes it has seen what failed so
// far, and forgives it; the rollout and the agent do not look. The fleet may have changed
// since, so its checks pass anew, and those before hosts that have no slot yet.
func (s *State) resume(e message.Event, r message.Record) error {
	if s.Paused == nil {
		return fmt.Errorf("run %d is not paused", s.Key())
	}
	s.Paused, s.changed = nil, r.Time
	if !message.GoesOn(e.By) {
		s.forgiven = s.failures
	}
	for _, t := range s.queues[ready] {
		s.members[t.host].passedAt = time.Time{}
	}
	s.fleet.stale()
	return nil
}

func (s *State) abort(e message.Event, r message.Record) error {
	if s.aborted != nil {
		return fmt.Errorf("run %d is being aborted already, by %s", s.Key(), s.aborted.By)
	}
	s.aborted, s.changed = &Pausing{By: e.By, Why: e.Why, At: r.Time}, r.Time
	return nil
}

// freeze has the run end when a freeze begins, be it one that nobody knew of
// when the run was opened. Whether it is over is told by the log's clock alone:
// whoever wrote the event may go by one that is wrong.
func (s *State) freeze(e message.Event, r message.Record) error {
	if e.Until != nil && !r.Time.Before(*e.Until) {
		return fmt.Errorf("freeze %s was over at %s", e.Reason, stamp(*e.Until))
	}
	if !e.NotAfter.Before(s.NotAfter) {
		return fmt.Errorf("run %d ends at %s anyway, before %s", s.Key(), stamp(s.NotAfter), stamp(*e.NotAfter))
	}
	s.NotAfter, s.frozen, s.changed = *e.NotAfter, e.Reason, r.Time
	return nil
}

func (s *State) finish(event message.Event, r message.Record) error {
	result := Result(event.Result)
	if !slices.Contains([]Result{Completed, Partial, Failed, IsAborted, TimedOut}, result) {
		return fmt.Errorf("run %d cannot end as %q", s.Key(), event.Result)
	}
	s.Phase, s.Result, s.Reason = Finished, result, event.Reason
	s.EndedSeq, s.EndedAt, s.changed = r.Seq, r.Time, r.Time
	for i := range s.members {
		s.close(i, r.Time)
	}
	s.queues = queues{}
	return nil
}

// close gives a host that the run leaves behind its final status.
func (s *State) close(i int, at time.Time) {
	m := &s.members[i]
	if m.final != "" {
		return
	}
	to, text := Skipped, "the run ended before its turn"
	switch {
	case m.underWay():
		to, text = HostFailed, "the run ended while it was "+string(m.status())
	case m.IsSilent():
		to, text = Unreachable, "it was silent until the run ended"
	case m.step == preparing:
		text = "it had not answered prepare when the run ended"
	}
	s.edit(i, at, func(m *member) {
		if m.step == upgrading || m.step == rebooting {
			m.Owes.Answer, m.Before = m.asked(), false
		}
		m.ends(to, text, at)
		m.step = done
	})
}
