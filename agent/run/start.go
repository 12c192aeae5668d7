package run

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
)

// blocker is what keeps the next host from starting.
type blocker int

const (
	nothing blocker = iota
	// answers: members have yet to answer prepare, and the run waits for them.
	answers
	// noneLeft: no host is left to start.
	noneLeft
	pausing
	// stepping: the step of the stage is under way.
	stepping
	soak
	approval
	// noTime: a host that starts now would not be done by not-after.
	noTime
	// slots: as many hosts as may be are out of service.
	slots
	// budgets: a slot is free, and as many hosts as may be are out of service in a cell of each
	// host that could take it.
	budgets
	// allBusy: the hosts that are left are under way, silent or late.
	allBusy
	splay
)

// blocker returns what keeps the next host from starting. Next, Waiting and the
// forecast all ask it, so that a run never waits for anything but what it says.
func (s *State) blocker(now time.Time) blocker {
	switch {
	case s.isPreparing():
		return answers
	case s.noneLeft():
		return noneLeft
	case s.Paused != nil:
		return pausing
	case s.stages.current().doing.underWay():
		return stepping
	case s.stages.soaking(now):
		return soak
	case !s.stages.current().approved():
		return approval
	case !s.fits(now, s.needs()):
		return noTime
	case s.stages.current().Step != nil:
		return nothing
	}
	return s.stageBlocker(now)
}

// stageBlocker returns what keeps the next host of the current stage from starting
// because of other hosts. A slot is reserved for a host that is being checked.
func (s *State) stageBlocker(now time.Time) blocker {
	if _, some := s.nextReady(); some {
		return nothing
	}
	g, free := s.stages.current(), s.roster.Free(s.stages.index)
	i, some := s.firstCandidate()
	switch room := some && g.roomFor(s.members[i].HasSlot(), free); {
	case room && now.Before(s.starts(i)):
		return splay
	case room:
		return nothing
	case !some && !g.lateSince.IsZero():
		return allBusy
	case s.awaitsBudget():
		return budgets
	case some, !g.roomFor(false, free):
		return slots
	}
	return allBusy
}

// nextReady returns the first host that has passed the checks before it, and may be taken
// out of service now; false when there is none.
func (s *State) nextReady() (int, bool) { return s.nextReadyIf(nil) }

// nextReadyIf is nextReady of the hosts that are out of service already or whose list of cells a test
// accepts, nil all.
func (s *State) nextReadyIf(accepts func(set int) bool) (int, bool) {
	for _, t := range s.queues[ready] {
		if accepts != nil && !t.isVoid(s.members) && !s.members[t.host].HasSlot() && !accepts(s.members[t.host].SetOf()) {
			continue
		}
		if !t.isVoid(s.members) && s.roster.MayLeave(t.host) && s.stages.current().mayTake(s.members[t.host].HasSlot()) {
			return t.host, true
		}
		if !s.roster.Budgeted() { // What keeps the first from it keeps them all.
			break
		}
	}
	return 0, false
}

// firstCandidate returns the candidate of the current stage that goes next; false
// when there is none.
func (s *State) firstCandidate() (int, bool) {
	if !s.roster.Budgeted() {
		return s.stages.current().firstCandidate(s.roster.Free(s.stages.index), nil)
	}
	return s.stages.current().firstCandidate(s.roster.Free(s.stages.index), s.roster.Admits)
}

// awaitsBudget reports whether a host of the current stage could start if one of its cells had a
// free place.
func (s *State) awaitsBudget() bool {
	_, some := s.blockedByBudget()
	return some
}

// blockedByBudget returns the first host of the current stage that only a cell keeps from
// starting; false when there is none.
func (s *State) blockedByBudget() (int, bool) {
	g, free := s.stages.current(), s.roster.Free(s.stages.index)
	if !s.roster.Budgeted() || free < 1 {
		return 0, false
	}
	for _, t := range s.queues[ready] {
		if !t.isVoid(s.members) && !s.members[t.host].HasSlot() && !s.roster.MayLeave(t.host) {
			return t.host, true
		}
	}
	if !g.roomFor(false, free) {
		return 0, false
	}
	i, some := g.candidates.firstUnheld(nil)
	return i, some && !s.roster.MayLeave(i)
}

// next is the host that starts next, while nothing keeps it from that: a host that
// has passed its checks, or else the first candidate.
func (s *State) next() int {
	i, some := s.nextReady()
	if !some {
		i, _ = s.firstCandidate()
	}
	return i
}

// starts is the earliest start of a host of the current stage by the splay: its hash
// decides how long after the beginning of the stage.
func (s *State) starts(i int) time.Time {
	m, begins := &s.members[i], times.Later(s.stages.reached(), s.stages.current().approvedAt)
	// A splay that is longer than half of what is left would waste the window; for
	// a host that is out of service anyway there is none.
	if left := s.NotAfter.Sub(begins) / 2; s.rollout.Splay.Duration() > 0 && left > 0 && !m.HasSlot() {
		return begins.Add(share(m.hash, min(s.rollout.Splay.Duration(), left)))
	}
	return begins
}

// unblocks is when time alone may change what keeps the next host from
// starting; zero when it does not.
func (s *State) unblocks(now time.Time) time.Time {
	switch {
	case s.isPreparing():
		return s.beginsWithoutLate()
	case s.noneLeft(), s.stages.current().doing.underWay():
		return time.Time{}
	}
	at := s.leavesOutLate()
	if s.stages.soaking(now) {
		at = times.Sooner(at, s.stages.reached())
	} else if !s.stages.current().approved() {
		at = times.Sooner(at, s.stages.approvalEnds(s.NotAfter))
	}
	if told := s.lacksHost(); now.Before(told) {
		at = times.Sooner(at, told)
	}
	if i, some := s.firstCandidate(); some && now.Before(s.starts(i)) {
		at = times.Sooner(at, s.starts(i))
	}
	if took := s.needs(); took > 0 {
		// From then on no host and no step fits any more, which may end the run.
		if last := s.NotAfter.Add(-took); !now.After(last) {
			at = times.Sooner(at, last.Add(1))
		}
	}
	return at
}

// Turns is when time alone may change what the run waits for, or makes a host overdue; zero
// when it does neither.
func (s *State) Turns(now time.Time) time.Time {
	if s.Over() {
		return time.Time{}
	}
	at := s.unblocks(now)
	if !at.After(now) {
		at = time.Time{}
	}
	if !s.overAt(now) {
		at = times.Sooner(at, s.NotAfter)
	}
	return times.Sooner(at, s.nextOverdue(now))
}
