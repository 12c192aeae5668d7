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
	// order holds its hosts in the order in which they go, lines those that may
	// have their turn now.
	order []int
	lines [2]line
	// left counts its hosts that are not done, waiting those that had their turn
	// and have no slot yet. taken counts those that were taken out of
	// service in this run, turns those that had their turn and were not yet.
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

// reached is when the current stage may begin, but for its approval: after all
// have answered prepare and the stages before have soaked.
func (s *State) reached() time.Time { return later(s.preparedAt, s.soakEnds) }

// soaking reports whether the current stage has to wait for the soak of those
// before.
func (s *State) soaking(now time.Time) bool {
	return s.stages[s.current].left > 0 && now.Before(s.soakEnds)
}

// advance moves on to the first stage that has hosts left. A stage of which no
// host had its turn has nothing that could show in a soak.
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

// starts is when a host may start at the earliest, for the sake of splay: some
// time after its stage may begin, chosen by a lot that is the same whoever
// draws it.
func (s *State) starts(i int) time.Time {
	m := &s.members[i]
	return s.splays(m, later(s.reached(), s.stages[m.stage].approvedAt))
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

// lineUp puts the hosts of each stage into the order in which they go: as they
// were given, or with a splay by lot; first those that are out of service since
// a run before, because to upgrade them takes nobody else out.
func (s *State) lineUp() {
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
			s.members[i].place = k
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
