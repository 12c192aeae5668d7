package run

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/roster"
)

// edit changes a member and keeps right whatever is counted of all, so that no
// step has to look at more than one host.
func (s *State) edit(i int, at time.Time, change func(*member)) {
	m := &s.members[i]
	before := *m
	held, goes := m.Held(), m.mayGo()
	s.count(m, -1)
	s.roster.Edit(i, at, func(*roster.Host) { change(m) })
	s.count(m, 1)
	s.changed = at
	if goes != m.mayGo() || held != m.Held() {
		s.lineUpAgain(i)
	}
	if held && !m.Held() {
		s.fleet.stale()
	}
	if before.step == m.step {
		return
	}
	m.moves++
	s.enter(i, before.step, m.step, at)
	s.leave(before.step)
	s.settle(m, &before, at)
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

// count adds a member to what is counted, or takes it away.
func (s *State) count(m *member, n int) {
	g := &s.stages[m.stage]
	s.statuses[m.status()] += n
	if m.underWay() {
		s.underWay += n
	}
	if m.step <= preparing {
		s.unprepared += n
	}
	if m.step <= ready {
		s.unstarted += n
	}
	if m.Held() && !m.takenAt.IsZero() {
		g.taken += n
	}
	if m.hasTurn() {
		g.turns += n
		if !m.Held() {
			g.waiting += n
		}
	}
	if m.left() {
		g.left += n
	}
	switch m.final {
	case Upgraded:
		g.upgraded += n
	case HostFailed:
		g.failed += n
	}
}

// settle notes what has come to its end with a member.
func (s *State) settle(m, before *member, at time.Time) {
	if before.step <= preparing && s.unprepared == 0 && s.ID != 0 && s.preparedAt.IsZero() && !s.Over() {
		s.preparedAt = at
		s.enough(at)
	}
	if before.left() && !m.left() {
		s.advance(at)
	}
}
