package run

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/roster"
)

// edit changes a member, and updates all counts, queues and lists of candidates:
// no step has to look at all hosts. A host that is back in service has changed the
// fleet, so that the checks of the fleet have to pass again.
func (s *State) edit(i int, at time.Time, change func(*member)) {
	m := &s.members[i]
	from, status, left := m.step, m.status(), m.left()
	held, goes := m.Held(), m.mayGo()
	s.count(m, -1)
	s.roster.Edit(i, at, func(*roster.Host) { change(m) })
	s.count(m, 1)
	if to := m.status(); to != status {
		s.statuses[status]--
		s.statuses[to]++
	}
	s.changed = at
	if goes != m.mayGo() || held != m.Held() {
		s.relist(i)
	}
	if held && !m.Held() {
		s.fleet.stale()
	}
	if from == m.step {
		return
	}
	m.moves++
	s.enter(i, from, m.step, at)
	s.queues.leave(s.members, from)
	if from <= preparing {
		s.settle(at)
	}
	if left && !m.left() {
		s.advance(at)
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

// count adds a member to what is counted, or takes it away.
func (s *State) count(m *member, n int) {
	g := &s.stages[m.Group]
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

// settle notes that all members have answered prepare, or that their time is up.
func (s *State) settle(at time.Time) {
	if s.unprepared == 0 && s.ID != 0 && s.preparedAt.IsZero() && !s.Over() {
		s.preparedAt = at
		s.enough(at)
	}
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
	s.fleet.setBack(now)
	s.roster.Earlier(now)
	times := []*time.Time{&s.sentAt, &s.preparedAt, &s.changed}
	for i := range s.members {
		m := &s.members[i]
		times = append(times, &m.since, &m.takenAt, &m.ranAt, &m.passedAt)
	}
	for i := range s.stages {
		times = append(times, &s.stages[i].doneAt, &s.stages[i].approvedAt)
	}
	for _, queue := range s.queues {
		for i := range queue {
			times = append(times, &queue[i].since)
		}
	}
	for _, t := range times {
		*t = earlier(*t, now)
	}
	if s.current > 0 {
		s.soakEnds = earlier(s.soakEnds, now.Add(s.stages[s.soaks].Soak.Duration()))
	}
}
