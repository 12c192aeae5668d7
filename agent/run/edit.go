package run

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/roster"
)

// edit changes a member, and updates all counts, queues and candidates:
// no step has to look at all hosts. A host that is back in service has changed the
// fleet, so that the checks of the fleet have to pass again.
func (s *State) edit(i int, at time.Time, change func(*member)) {
	m := &s.members[i]
	g := &s.stages.list[m.Group]
	from, status, left := m.step, m.status(), m.left()
	held, candidate := m.Held(), m.isCandidate()
	s.counts.add(m, -1)
	g.add(m, -1)
	s.roster.Edit(i, at, func(*roster.Host) { change(m) })
	s.counts.add(m, 1)
	g.add(m, 1)
	s.counts.change(status, m.status())
	s.noteBusy(i)
	s.changed = at
	if candidate != m.isCandidate() || held != m.Held() {
		g.candidates.update(s.members, i)
	}
	if held && !m.Held() {
		s.fleet.stale()
	}
	if from == m.step {
		return
	}
	m.moves++
	since := at
	if from == draining && m.step == undraining { // The drain hook ends first, though nobody waits for it.
		since = later(at, m.takenAt.Add(s.policy.taskLimit(message.Drain)))
	}
	s.queues.enter(s.members, i, since)
	s.queues.leave(s.members, from)
	if from <= preparing {
		s.endPreparing(at)
	}
	if left && !m.left() {
		s.stages.advance(at)
	}
}

// editHost changes a host of the roster, member or not.
func (s *State) editHost(i int, at time.Time, change func(*roster.Host)) {
	if s.isMember(i) {
		s.edit(i, at, func(m *member) { change(m.Host) })
		return
	}
	s.roster.Edit(i, at, change)
	s.changed = at
}

// endPreparing notes that all members have answered prepare, or that their time is up,
// but for those that have not answered a command of an earlier run: these are left out.
func (s *State) endPreparing(at time.Time) {
	if s.counts.unprepared > 0 || s.sentAt.IsZero() || !s.stages.preparedAt.IsZero() || s.Over() {
		return
	}
	s.stages.preparedAt = at
	for i := range s.members {
		if m := &s.members[i]; m.step <= preparing {
			s.edit(i, at, func(m *member) {
				m.leftOut = true
				m.ends(Skipped, fmt.Sprintf("it had not answered %s of an earlier run when the other hosts were prepared", m.Owes.Answer), at)
			})
		}
	}
	s.enough(at)
}

// follow notes the time of the next record. When it is before the time of the last
// record, the log's clock was set back: each time that is in the future now becomes
// now, so that no limit lasts longer than it is long (design.md 5, invariant 7). The
// end of the run stays as far away as it was.
func (s *State) follow(now time.Time) {
	if now.Before(s.newest) {
		s.setBack(now)
	}
	s.newest = now
}

func (s *State) setBack(now time.Time) {
	s.Deadline.setBack(s.newest, now)
	s.Control.setBack(now)
	s.stages.setBack(now)
	s.queues.setBack(now)
	s.fleet.setBack(now)
	s.roster.Earlier(now)
	for i := range s.members {
		s.members[i].setBack(now)
	}
	s.sentAt, s.changed = earlier(s.sentAt, now), earlier(s.changed, now)
}
