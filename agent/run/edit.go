package run

import "time"

// edit changes a member and keeps right whatever is counted of all, so that no
// step has to look at more than one host.
func (s *State) edit(i int, at time.Time, change func(*member)) {
	m := &s.members[i]
	before := *m
	s.count(&before, -1)
	change(m)
	s.count(m, 1)
	s.changed = at
	if before.mayGo() != m.mayGo() || before.slot != m.slot {
		s.lineUpAgain(i)
	}
	if before.step == m.step {
		return
	}
	m.moves++
	s.enter(i, before.step, m.step, at)
	s.leave(before.step)
	s.settle(m, &before, at)
}

// count adds a member to what is counted, or takes it away.
func (s *State) count(m *member, n int) {
	g := &s.stages[m.stage]
	s.counts[m.status()] += n
	if m.out() {
		g.out += n
	}
	if m.owes() {
		s.owing += n
	}
	if m.step <= preparing {
		s.unprepared += n
	}
	if m.step <= ready {
		s.unstarted += n
	}
	if m.slot && !m.takenAt.IsZero() {
		g.taken += n
	}
	if m.step == checkingBefore || m.step == ready {
		g.turns += n
		if !m.slot {
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
