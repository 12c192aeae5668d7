package run

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// isPreparing reports whether the run waits for answers to prepare before it begins.
func (s *State) isPreparing() bool { return s.stages.preparedAt.IsZero() }

// isLate reports whether the run has begun without a host that has yet to answer prepare.
func (s *State) isLate(m *member) bool { return !s.isPreparing() && m.isAwaited() }

// noteEnough notes since when enough members are prepared for the run to begin.
func (s *State) noteEnough(at time.Time) {
	switch {
	case !s.isPreparing():
	case !s.enoughPrepared():
		s.enoughAt = time.Time{}
	case s.enoughAt.IsZero():
		s.enoughAt = at
	}
}

// enoughPrepared reports whether min-prepared members are prepared, and so at least one
// host can be upgraded. Nobody waits for what an operator has left out.
func (s *State) enoughPrepared() bool {
	n := s.counts.status[Prepared]
	return n > 0 && n+s.counts.status[Skipped] >= s.rollout.MinPrepared
}

// beginsWithoutLate is when the run begins without the members that have yet to answer
// prepare; zero when it waits for them.
func (s *State) beginsWithoutLate() time.Time {
	if !s.isPreparing() || s.enoughAt.IsZero() || s.rollout.waitsForAll {
		return time.Time{}
	}
	return s.enoughAt.Add(s.rollout.patience)
}

// noteLate notes since when the current stage waits for nobody but hosts that are late.
func (s *State) noteLate(at time.Time) {
	g := s.stages.current()
	switch {
	case s.isPreparing() || g.left == 0 || g.left > g.unprepared:
		g.lateSince = time.Time{}
	case g.lateSince.IsZero():
		g.lateSince = at
	}
}

// leavesOutLate is when the current stage leaves out its hosts that are late; zero when it
// waits for others too, may not begin yet, or is not passed over: no host of it has begun,
// and stages follow that go by how it fares.
func (s *State) leavesOutLate() time.Time {
	g := s.stages.current()
	if g.lateSince.IsZero() || s.rollout.waitsForAll || s.Paused != nil || !g.approved() || !g.begun && !s.stages.lastWithHosts() {
		return time.Time{}
	}
	return times.Later(g.lateSince, times.Later(s.stages.soak.Until, g.approvedAt)).Add(s.rollout.patience)
}

// lateNow returns the hosts of the current stage that are late.
func (s *State) lateNow() []string { return s.members.of(s.stages.current()).awaited() }

// tellLate returns the event that the run begins without hosts that are late, or that their
// stage leaves out the first of them; nil when neither is due.
func (s *State) tellLate(now time.Time, seen *Seen) message.Event {
	if at := s.beginsWithoutLate(); !at.IsZero() && !now.Before(at) {
		return message.Late{Hosts: s.members.awaited()}
	}
	if at := s.leavesOutLate(); !at.IsZero() && !now.Before(at) {
		host := s.lateNow()[0]
		return message.Unprepared{Host: host, Doing: message.CleanText(seen.doing(host))}
	}
	return nil
}

// beginWithout begins the run though members have yet to answer prepare.
func (s *State) beginWithout(e message.Late, at time.Time) error {
	if s.ID == 0 || !s.isPreparing() || !s.enoughPrepared() {
		return fmt.Errorf("run %d cannot begin without %s", s.Key(), list(e.Hosts))
	}
	err := s.each(e, at, func(i int, _ time.Time) bool { return s.isMember(i) && s.members[i].isAwaited() })
	if err == nil {
		s.begins(at)
		s.changed = at
	}
	return err
}

// leaveOutLate leaves out a host that its stage no longer waits for.
func (s *State) leaveOutLate(i int, doing string, at time.Time) bool {
	if !s.isMember(i) || !s.isLate(&s.members[i]) || s.members[i].Group != s.stages.index {
		return false
	}
	text := "it did not prepare in time"
	if doing != "" {
		text += "; last it told: " + doing
	}
	status := Skipped
	if s.members[i].IsSilent() {
		status, text = Unreachable, "it was silent; "+text
	}
	s.edit(i, at, func(*member) { s.ends(i, status, text, at) })
	return true
}

// noteUnmet notes that a host fails to prepare, if it is late.
func (s *State) noteUnmet(i int, text string) {
	if m := &s.members[i]; s.isLate(m) {
		s.stages.list[m.Group].unmet = fmt.Sprintf("%s failed: %s", m.Name, text)
	}
}

// prepareEnds is when the time of hosts that have yet to answer prepare is up.
func (s *State) prepareEnds() time.Time {
	return times.Sooner(s.sentAt.Add(s.rollout.limit(message.Awaited{Action: message.Prepare})), s.endsBy)
}

// waitingForAnswers returns that the run waits for hosts to answer prepare, and when it goes on
// without them; zero when it does not before their time is up.
func (s *State) waitingForAnswers(hosts []string, goesOn time.Time, how string) Waiting {
	w := Waiting{What: ForHost, Detail: list(hosts) + " to answer prepare", Since: s.sentAt, Until: s.prepareEnds(), Hosts: hosts}
	if !goesOn.IsZero() && goesOn.Before(w.Until) {
		them := "them"
		if len(hosts) == 1 {
			them = "it"
		}
		w.Until = goesOn
		w.Detail += fmt.Sprintf(" until %s, and then %s %s", stamp(goesOn), how, them)
	}
	return w
}

// waitingForLate returns that a stage waits for hosts that are late, and for nobody else.
func (s *State) waitingForLate(g *stage, hosts []string) Waiting {
	w := s.waitingForAnswers(hosts, s.leavesOutLate(), "continues without")
	if !g.begun && !s.stages.lastWithHosts() {
		w.Detail += fmt.Sprintf(", because no host of stage %s is prepared", g.Name)
	}
	return w
}
