package run

import (
	"cmp"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
)

// stage is what a run knows of a stage.
type stage struct {
	policy.ResolvedStage
	// first is the index of its first host.
	first int
	// order holds its hosts in the order in which they go, candidates those that may
	// have their turn now.
	order      []int
	candidates [2]positions
	// left counts the hosts that are not done, taken those that this run has taken
	// out of service, turns those that had their turn and were not taken out yet.
	// waiting counts the hosts among turns that are in service.
	left, waiting, taken, turns int
	upgraded, failed            int
	// doneAt is when the last of its hosts was done.
	doneAt     time.Time
	approvedAt time.Time
	// begun tells that one of its hosts had its turn.
	begun bool
}

// Stage is a stage as others see it.
type Stage struct {
	policy.ResolvedStage
	// Phase is pending, waiting-for-approval, running, soaking or done.
	Phase                          string
	OutOfService, Upgraded, Failed int
}

// The phases of a stage.
const (
	stagePending  = "pending"
	stageApproval = "waiting-for-approval"
	stageRunning  = "running"
	stageSoaking  = "soaking"
	stageDone     = "done"
)

// Stages returns the stages as they stand at a time.
func (s *State) Stages(now time.Time) []Stage {
	views := make([]Stage, len(s.stages))
	for i := range s.stages {
		g := &s.stages[i]
		views[i] = Stage{ResolvedStage: g.ResolvedStage, Phase: s.stagePhase(i, now), OutOfService: s.roster.Out(i), Upgraded: g.upgraded, Failed: g.failed}
	}
	return views
}

func (s *State) stagePhase(i int, now time.Time) string {
	g := &s.stages[i]
	switch {
	case g.left == 0 && i == s.soaks && s.soaking(now) && !s.Over():
		return stageSoaking
	case g.left == 0:
		return stageDone
	case i > s.current || s.Over():
		return stagePending
	case g.begun:
		return stageRunning
	case s.unprepared == 0 && !s.soaking(now) && !s.approved(g):
		return stageApproval
	}
	return stagePending
}

func (s *State) approved(g *stage) bool { return !g.Approval || !g.approvedAt.IsZero() }

// reached is when the current stage may begin, apart from its approval: all hosts
// have answered prepare, and the stages before have soaked.
func (s *State) reached() time.Time { return later(s.preparedAt, s.soakEnds) }

// soaking reports whether the current stage has to wait for the soak of those
// before.
func (s *State) soaking(now time.Time) bool {
	return s.stages[s.current].left > 0 && now.Before(s.soakEnds)
}

// advance moves on to the first stage that has hosts left. A stage in which no host
// had its turn has changed nothing, so it does not soak.
func (s *State) advance(at time.Time) {
	for s.stages[s.current].left == 0 {
		g := &s.stages[s.current]
		if g.doneAt.IsZero() {
			g.doneAt = at
		}
		if s.current+1 == len(s.stages) {
			return
		}
		if ends := g.doneAt.Add(g.Soak.Duration()); g.begun && ends.After(s.soakEnds) {
			s.soakEnds, s.soaks = ends, s.current
		}
		s.current++
	}
}

// starts is the earliest start of a host by the splay: its lot decides how long after
// the beginning of its stage.
func (s *State) starts(i int) time.Time {
	m := &s.members[i]
	return s.splays(m, later(s.reached(), s.stages[m.Group].approvedAt))
}

// splays is when a host may start whose stage begins at a time.
func (s *State) splays(m *member, begins time.Time) time.Time {
	// A splay that is longer than half of what is left would waste the window; for
	// a host that is out of service anyway there is none.
	if left := s.NotAfter.Sub(begins) / 2; s.policy.Splay.Duration() > 0 && left > 0 && !m.Held() {
		return begins.Add(share(m.lot, min(s.policy.Splay.Duration(), left)))
	}
	return begins
}

// listCandidates puts the hosts of each stage into order: as they were given, or
// with a splay by lot. Hosts that are out of service since an earlier run go first,
// because their upgrade takes no other host out of service.
func (s *State) listCandidates() {
	for n := range s.stages {
		g := &s.stages[n]
		g.order = make([]int, g.Size)
		for k := range g.order {
			g.order[k] = g.first + k
			s.members[g.first+k].lot = draw(s.ID, s.members[g.first+k].Name)
		}
		if s.policy.Splay.Duration() > 0 {
			slices.SortStableFunc(g.order, func(a, b int) int { return cmp.Compare(s.members[a].lot, s.members[b].lot) })
		}
		held, free := make([]int, 0, g.Size), make([]int, 0, g.Size)
		for _, i := range g.order {
			if s.members[i].Held() {
				held = append(held, i)
			} else {
				free = append(free, i)
			}
		}
		g.order = append(held, free...)
		for k, i := range g.order {
			s.members[i].position = k
		}
	}
}

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
	// allBusy: the hosts that are left are under way, or silent.
	allBusy
	splay
)

// blocker returns what keeps the next host from starting. Next, Waiting and the
// forecast all ask it, so that a run never waits for anything but what it says.
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
	case !s.fits(now, s.pace.usual):
		return noTime
	}
	return s.stageBlocker(now, g)
}

// stageBlocker returns what keeps the next host of a stage from starting because of
// other hosts. A slot is reserved for a host that is being checked.
func (s *State) stageBlocker(now time.Time, g *stage) blocker {
	if i, checked := s.queues.front(ready); checked && s.mayTake(i) {
		return nothing
	}
	i, some := s.firstCandidate()
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

// roomFor reports whether a host may have its turn: there is a free slot for it. A
// host that is out of service since an earlier run needs none, but no more of these
// are upgraded at once than may be out of service.
func (s *State) roomFor(i int) bool {
	m := &s.members[i]
	g := &s.stages[m.Group]
	if m.Held() {
		return g.taken+g.turns < g.MaxUnavailable
	}
	return s.roster.Out(m.Group)+g.waiting < g.MaxUnavailable
}

// mayTake reports whether a host that had its turn may be taken out of service now.
func (s *State) mayTake(i int) bool {
	m := &s.members[i]
	g := &s.stages[m.Group]
	if m.Held() {
		return g.taken < g.MaxUnavailable
	}
	return s.roster.Out(m.Group) < g.MaxUnavailable
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
	if i, some := s.firstCandidate(); some && now.Before(s.starts(i)) {
		at = sooner(at, s.starts(i))
	}
	if took := s.pace.usual; took > 0 {
		// From then on no host fits any more, which may end the run.
		if last := s.NotAfter.Add(-took); !now.After(last) {
			at = sooner(at, last.Add(1))
		}
	}
	return at
}
