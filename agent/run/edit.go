package run

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// edit changes a member, and updates all counts, queues and candidates:
// no decision has to look at all hosts. A host that is back in service has changed the
// fleet, so that the checks of the fleet have to pass again.
func (s *State) edit(i int, at time.Time, change func(*member)) {
	m := &s.members[i]
	from, since, status, left := m.phase, m.since, m.status(), m.left()
	s.recount(i, at, change)
	s.counts.change(status, m.status())
	s.noteBusy(i)
	s.noteEnough(at)
	defer s.noteLate(at)
	if from == m.phase {
		return
	}
	m.moves++
	if m.phase > from && (m.final == "" || m.final == Upgraded) {
		s.paces[from].add(at.Sub(since))
	}
	since = at
	if from == draining && m.phase == undraining { // The drain hook ends first, though nobody waits for it.
		since = times.Later(at, m.takenAt.Add(s.rollout.taskLimit(message.Drain)))
	}
	s.queues.enter(s.members, i, since)
	s.queues.leave(s.members, from)
	if from <= preparing {
		s.endPreparing(at)
	}
	if left && !m.left() {
		s.advance(at)
	}
}

// recount changes a member, and updates what the next start depends on: the counts, those of
// its stage, and who goes next in it.
func (s *State) recount(i int, at time.Time, change func(*member)) {
	m := &s.members[i]
	g := &s.stages.list[m.Group]
	held, candidate := m.HasSlot(), m.isCandidate()
	s.counts.add(m, -1)
	g.add(m, -1)
	change(m)
	s.counts.add(m, 1)
	g.add(m, 1)
	s.changed = at
	if candidate != m.isCandidate() || held != m.HasSlot() {
		g.candidates.update(s.members, i)
	}
	if held && !m.HasSlot() {
		s.fleet.stale()
	}
}

// advance begins the next stage if the member that has just left was the last of its own.
func (s *State) advance(at time.Time) {
	if unmet := s.stages.advance(at); unmet != "" && !s.Over() {
		s.onFailure(unmet, at)
	}
}

// stageBegins notes that a host of a stage is admitted, or that its step begins.
func (s *State) stageBegins(g *stage, at time.Time) {
	g.begun, s.Phase = true, Upgrading
	if g.PointOfNoReturn && s.closedAt.IsZero() {
		s.closedAt = at
	}
}

// serve changes the service of a host of the roster, member or not.
func (s *State) serve(i int, at time.Time, change func()) {
	if s.isMember(i) {
		s.edit(i, at, func(*member) { change() })
		return
	}
	change()
	s.changed = at
}

// endPreparing notes that all members have answered prepare, or that their time is up.
func (s *State) endPreparing(at time.Time) {
	if s.counts.unprepared > 0 || s.sentAt.IsZero() || !s.isPreparing() || s.Over() {
		return
	}
	s.begins(at)
	s.enough(at)
}

// begins notes that the run waits for no further answer to prepare before it begins. The
// members that have not answered a command of an earlier run are left out.
func (s *State) begins(at time.Time) {
	s.stages.preparedAt = at
	for i := range s.members {
		if m := &s.members[i]; m.phase <= preparing && m.owesBefore() {
			s.edit(i, at, func(m *member) {
				m.leftOut = true
				s.ends(i, Skipped, fmt.Sprintf("it had not answered %s of an earlier run when the other hosts were prepared", m.unansweredBefore()), at)
			})
		}
	}
	s.noteLate(at)
}

// setBack follows the log's clock, which was set back from one time to another: each time that
// is in the future now becomes now, so that no limit lasts longer than it is long, and the run
// ends. The end of the run stays as far away as it was.
func (s *State) setBack(from, now time.Time) {
	s.Deadline.setBack(from, now)
	s.Control.setBack(now)
	s.stages.setBack(now)
	s.Reached = reached.SetBack(s.Reached, now)
	s.queues.setBack(now)
	s.fleet.setBack(now)
	s.start.setBack(now)
	s.roster.SetBack(now)
	for i := range s.members {
		s.members[i].setBack(now)
	}
	s.sentAt, s.enoughAt, s.changed = times.Earlier(s.sentAt, now), times.Earlier(s.enoughAt, now), times.Earlier(s.changed, now)
	s.closedAt = times.Earlier(s.closedAt, now)
}
