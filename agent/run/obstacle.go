package run

import "time"

// blocker is what keeps the next host from starting.
type blocker int

const (
	nothing blocker = iota
	// answers: members have yet to answer prepare, or to be given up.
	answers
	// noneLeft: no host is left to start.
	noneLeft
	pausing
	soak
	approval
	// noTime: a host that starts now would not be done by not-after.
	noTime
	// slots: as many hosts as may be are out of service.
	slots
	// allBusy: those hosts that are left are under way, or silent.
	allBusy
	splay
)

// blocker returns what keeps the next host from starting: Next and Waiting
// both go by it, so that a run never waits for anything but what it says.
func (s *State) blocker(now time.Time) blocker {
	g := &s.stages[s.current]
	switch {
	case s.unprepared > 0:
		return answers
	case s.unstarted == 0:
		return noneLeft
	case s.Paused != nil:
		return pausing
	case s.soaking(now):
		return soak
	case !s.approved(g):
		return approval
	case !s.fits(now):
		return noTime
	}
	return s.stageBlocker(now, g)
}

// stageBlocker returns what there is about the hosts of the stage that keeps the
// next one from starting. A host that is being checked has a slot in prospect:
// nobody else may take it.
func (s *State) stageBlocker(now time.Time, g *stage) blocker {
	if i, checked := s.front(ready); checked && s.mayTake(i) {
		return nothing
	}
	i, some := s.upNext()
	switch {
	case !some && s.roster.Out(s.current)+g.waiting >= g.MaxUnavailable, some && !s.roomFor(i):
		return slots
	case !some:
		return allBusy
	case now.Before(s.starts(i)):
		return splay
	}
	return nothing
}

// roomFor reports whether a host may have its turn: there is a slot for it; or
// it has one since a run before, and this run has taken fewer out of service
// than may be.
func (s *State) roomFor(i int) bool {
	m := &s.members[i]
	g := &s.stages[m.stage]
	if m.Held() {
		return g.taken+g.turns < g.MaxUnavailable
	}
	return s.roster.Out(m.stage)+g.waiting < g.MaxUnavailable
}

// mayTake reports whether a host that has had its turn may be taken out of
// service.
func (s *State) mayTake(i int) bool {
	m := &s.members[i]
	g := &s.stages[m.stage]
	if m.Held() {
		return g.taken < g.MaxUnavailable
	}
	return s.roster.Out(m.stage) < g.MaxUnavailable
}

// unblocks is when time alone may change what keeps the next host from
// starting; zero when it does not.
func (s *State) unblocks(now time.Time) time.Time {
	g := &s.stages[s.current]
	if s.unprepared > 0 || s.unstarted == 0 {
		return time.Time{}
	}
	var at time.Time
	if s.soaking(now) {
		at = s.reached()
	} else if !s.approved(g) {
		at = s.approvalEnds(g)
	}
	if i, some := s.upNext(); some && now.Before(s.starts(i)) {
		at = sooner(at, s.starts(i))
	}
	if took := s.typical(); took > 0 {
		// From then on no host fits any more, which may end the run.
		if last := s.NotAfter.Add(-took); !now.After(last) {
			at = sooner(at, last.Add(1))
		}
	}
	return at
}
