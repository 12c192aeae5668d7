package run

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
)

// stage is what a run knows of a stage.
type stage struct {
	policy.ResolvedStage
	// first is the index of its first host.
	first int
	// candidates are its hosts that may be admitted now.
	candidates candidates
	// left counts the hosts that are not done, taken those that this run has taken
	// out of service, admitted those that were admitted and not taken out yet.
	// waiting counts the admitted hosts that are in service.
	left, waiting, taken, admitted int
	upgraded, failed               int
	// doneAt is when the last of its hosts was done.
	doneAt     time.Time
	approvedAt time.Time
	// begun tells that one of its hosts was admitted.
	begun bool
}

// add adds a member to what is counted, or takes it away.
func (g *stage) add(m *member, n int) {
	if m.Held() && !m.takenAt.IsZero() {
		g.taken += n
	}
	if m.isAdmitted() {
		g.admitted += n
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

func (g *stage) approved() bool { return !g.Approval || !g.approvedAt.IsZero() }

// roomFor reports whether a host may be admitted while so many hosts of the stage are
// out of service: there is a free slot for it. A host that is out of service since an
// earlier run needs none, but no more of these are upgraded at once than may be out of
// service.
func (g *stage) roomFor(held bool, out int) bool {
	if held {
		return g.taken+g.admitted < g.MaxUnavailable
	}
	return out+g.waiting < g.MaxUnavailable
}

// mayTake reports whether a host that was admitted may be taken out of service while
// so many hosts of the stage are.
func (g *stage) mayTake(held bool, out int) bool {
	if held {
		return g.taken < g.MaxUnavailable
	}
	return out < g.MaxUnavailable
}

// firstCandidate returns the candidate that goes next while so many hosts of the stage
// are out of service; false when there is none. A host that is out of service goes
// first, if there is room for it now.
func (g *stage) firstCandidate(out int) (int, bool) {
	held, some := g.candidates.first(hasSlot)
	free, others := g.candidates.first(needsSlot)
	if some && (!others || g.roomFor(true, out)) {
		return held, true
	}
	return free, others
}

// stages are the stages of a run. A run goes through them one after the other, and
// each begins after the soak of those before.
type stages struct {
	list []stage
	// index is that of the current stage: the first that has hosts left.
	index int
	// preparedAt is when all members had answered prepare or their time was up; zero
	// before.
	preparedAt time.Time
	// soakEnds is when the soak of the stages before the current one ends, soaks the
	// index of the stage that soaks longest.
	soakEnds time.Time
	soaks    int
}

// current returns the current stage.
func (s *stages) current() *stage { return &s.list[s.index] }

// named returns the stage of a name; nil when there is none.
func (s *stages) named(name string) *stage {
	for n := range s.list {
		if s.list[n].Name == name {
			return &s.list[n]
		}
	}
	return nil
}

// reached is when the current stage may begin, apart from its approval: all hosts
// have answered prepare, and the stages before have soaked.
func (s *stages) reached() time.Time { return later(s.preparedAt, s.soakEnds) }

// soaking reports whether the current stage has to wait for the soak of those
// before.
func (s *stages) soaking(now time.Time) bool {
	return s.current().left > 0 && now.Before(s.soakEnds)
}

// approvalEnds is until when the current stage may be approved, in a run that ends at
// not-after.
func (s *stages) approvalEnds(notAfter time.Time) time.Time {
	timeout := s.current().ApprovalTimeout.Duration()
	if timeout == 0 {
		return notAfter
	}
	return sooner(s.reached().Add(timeout), notAfter)
}

// advance moves on to the first stage that has hosts left. A stage in which no host
// was admitted has changed nothing, so it does not soak.
func (s *stages) advance(at time.Time) {
	for s.current().left == 0 {
		g := s.current()
		if g.doneAt.IsZero() {
			g.doneAt = at
		}
		if s.index+1 == len(s.list) {
			return
		}
		if ends := g.doneAt.Add(g.Soak.Duration()); g.begun && ends.After(s.soakEnds) {
			s.soakEnds, s.soaks = ends, s.index
		}
		s.index++
	}
}

// doneAt is when the last stage was done; false when a stage has hosts left.
func (s *stages) doneAt() (time.Time, bool) {
	g := s.current()
	return g.doneAt, s.index+1 == len(s.list) && g.left == 0
}

// setBack follows the log's clock that was set back.
func (s *stages) setBack(now time.Time) {
	s.preparedAt = earlier(s.preparedAt, now)
	for n := range s.list {
		g := &s.list[n]
		g.doneAt, g.approvedAt = earlier(g.doneAt, now), earlier(g.approvedAt, now)
	}
	if s.index > 0 {
		s.soakEnds = earlier(s.soakEnds, now.Add(s.list[s.soaks].Soak.Duration()))
	}
}

// clone copies the stages, but for what never changes.
func (s *stages) clone() stages {
	c := *s
	c.list = slices.Clone(s.list)
	for n := range c.list {
		c.list[n].candidates = s.list[n].candidates.clone()
	}
	return c
}

// Stage is a stage as others see it.
type Stage struct {
	policy.ResolvedStage
	// Begun tells that one of its hosts was admitted.
	Begun bool
	// Phase is pending, waiting-for-approval, running, soaking, done or, when it ended
	// before any of its hosts began, skipped.
	Phase                          string
	OutOfService, Upgraded, Failed int
}

// Done reports whether the stage has begun and all its hosts are done.
func (g Stage) Done() bool { return g.Begun && (g.Phase == stageDone || g.Phase == stageSoaking) }

// The phases of a stage.
const (
	stagePending  = "pending"
	stageApproval = "waiting-for-approval"
	stageRunning  = "running"
	stageSoaking  = "soaking"
	stageDone     = "done"
	stageSkipped  = "skipped"
)

// Stages returns the stages as they stand at a time.
func (s *State) Stages(now time.Time) []Stage {
	views := make([]Stage, len(s.stages.list))
	for i := range s.stages.list {
		g := &s.stages.list[i]
		views[i] = Stage{ResolvedStage: g.ResolvedStage, Begun: g.begun, Phase: s.stagePhase(i, now), OutOfService: s.roster.Out(i), Upgraded: g.upgraded, Failed: g.failed}
	}
	return views
}

// Prepared reports whether all members have answered prepare, or nobody waits for them.
func (s *State) Prepared() bool { return !s.stages.preparedAt.IsZero() || s.Over() }

// Begun returns how many stages have begun.
func (s *State) Begun() int {
	begun := 0
	for i := range s.stages.list {
		if s.stages.list[i].begun {
			begun++
		}
	}
	return begun
}

func (s *State) stagePhase(i int, now time.Time) string {
	g := &s.stages.list[i]
	switch {
	case g.left == 0 && i == s.stages.soaks && s.stages.soaking(now) && !s.Over():
		return stageSoaking
	case g.left == 0 && g.begun:
		return stageDone
	case g.left == 0 || s.Over():
		return stageSkipped
	case i > s.stages.index:
		return stagePending
	case g.begun:
		return stageRunning
	case s.counts.unprepared == 0 && !s.stages.soaking(now) && !g.approved():
		return stageApproval
	}
	return stagePending
}
