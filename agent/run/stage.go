package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// stage is what a run knows of a stage.
type stage struct {
	rollout.ResolvedStage
	// first is the index of its first host.
	first int
	// candidates are its hosts that may be admitted now.
	candidates candidates
	// left counts the hosts that are not done, unprepared those of them that have yet to
	// answer prepare, taken those that this run has taken
	// out of service, admitted those that were admitted and not taken out yet.
	// waiting counts the admitted hosts that are in service.
	// left is 1 for a stage with a step that is not done.
	left, unprepared, waiting, taken, admitted int
	upgraded, failed                           int
	// doneAt is when the last of its hosts was done.
	doneAt     time.Time
	approvedAt time.Time
	// begun tells that one of its hosts was admitted, or that its step has begun.
	begun bool
	// doing is how its step stands.
	doing Doing
	// waits is the soak, of an earlier run, for which it waits; zero for none.
	waits stageSoak
	// lateSince is since when it waits for nobody but hosts that are late; zero while it
	// waits for others, or for nobody.
	lateSince time.Time
	// unmet is why a host that was late has failed to prepare; empty when none has.
	unmet string
}

// stageSoak is the soak of a stage.
type stageSoak struct {
	message.Soak
	stage string
}

// soak is the soak of the stage, which is done.
func (g *stage) soak() message.Soak {
	return message.Soak{Since: g.doneAt, Until: g.doneAt.Add(g.Soak.Duration())}
}

// add adds a member to what is counted, or takes it away.
func (g *stage) add(m *member, n int) {
	if m.HasSlot() && !m.takenAt.IsZero() {
		g.taken += n
	}
	if m.isAdmitted() {
		g.admitted += n
		if !m.HasSlot() {
			g.waiting += n
		}
	}
	if m.left() {
		g.left += n
	}
	if m.isAwaited() {
		g.unprepared += n
	}
	switch m.final {
	case Upgraded:
		g.upgraded += n
	case HostFailed:
		g.failed += n
	}
}

func (g *stage) approved() bool { return !g.Approval || !g.approvedAt.IsZero() }

// roomFor reports whether a host may be admitted while so many hosts of the stage may
// leave service: there is a free slot for it. A host that is out of service since an
// earlier run needs none, but no more of these are upgraded at once than may be out of
// service.
func (g *stage) roomFor(held bool, free int) bool {
	if held {
		return g.taken+g.admitted < g.MaxUnavailable
	}
	return g.waiting < free
}

// mayTake reports whether a host that was admitted, and may leave service, may be
// upgraded now. A host that is out of service since an earlier run needs no slot, but no
// more of these are upgraded at once than may be out of service.
func (g *stage) mayTake(held bool) bool { return !held || g.taken < g.MaxUnavailable }

// firstCandidate returns the candidate that goes next while so many hosts of the stage
// may leave service; false when there is none. A host that is out of service goes
// first, if there is room for it now. Of the others the first goes whose cells admits accepts.
func (g *stage) firstCandidate(free int, admits func(set int) bool) (int, bool) {
	held, some := g.candidates.firstHeld()
	unheld, others := g.candidates.firstUnheld(admits)
	if some && (!others || g.roomFor(true, free)) {
		return held, true
	}
	return unheld, others
}

// stages are the stages of a run. A run goes through them one after the other, and
// each begins after the soak of those before.
type stages struct {
	list []stage
	// index is that of the current stage: the first that has hosts left.
	index int
	// preparedAt is when all members had answered prepare or their time was up, or when the
	// run began without those that were late; zero before.
	preparedAt time.Time
	// soak is, of the soaks of the stages before the current one, in this run and in those that
	// it goes on from, the one that ends last.
	soak stageSoak
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
// have answered prepare or are late, and the stages before have soaked.
func (s *stages) reached() time.Time { return times.Later(s.preparedAt, s.soak.Until) }

// soaking reports whether the current stage has to wait for the soak of those
// before.
func (s *stages) soaking(now time.Time) bool {
	return s.current().left > 0 && now.Before(s.soak.Until)
}

// approvalEnds is until when the current stage may be approved, in a run that ends at
// not-after.
func (s *stages) approvalEnds(notAfter time.Time) time.Time {
	timeout := s.current().ApprovalTimeout.Duration()
	if timeout == 0 {
		return notAfter
	}
	return times.Sooner(s.reached().Add(timeout), notAfter)
}

// advance moves on to the first stage that has hosts left. A stage in which no host
// was admitted has changed nothing, so it does not soak. unmet is why the first stage
// that no host has begun is done, if its hosts were late and failed to prepare; empty when
// there is none, or no host is left after it.
func (s *stages) advance(at time.Time) (unmet string) {
	for s.current().left == 0 {
		g := s.current()
		if g.doneAt.IsZero() {
			g.doneAt = at
		}
		if s.index+1 == len(s.list) {
			return ""
		}
		if unmet == "" && !g.begun && g.unmet != "" {
			unmet = fmt.Sprintf("no host of stage %s is prepared: %s", g.Name, g.unmet)
		}
		if g.begun {
			s.waitsFor(stageSoak{g.soak(), g.Name})
		}
		s.index++
		s.enter()
	}
	return unmet
}

// enter begins to wait for the soak of earlier runs before the current stage.
func (s *stages) enter() { s.waitsFor(s.current().waits) }

// waitsFor has the current stage wait for a soak.
func (s *stages) waitsFor(soak stageSoak) {
	if soak.Until.After(s.soak.Until) {
		s.soak = soak
	}
}

// lastWithHosts reports whether no stage after the current one has hosts left.
func (s *stages) lastWithHosts() bool {
	return !slices.ContainsFunc(s.list[s.index+1:], func(g stage) bool { return g.left > 0 })
}

// doneAt is when the last stage was done; false when a stage has hosts left.
func (s *stages) doneAt() (time.Time, bool) {
	g := s.current()
	return g.doneAt, s.index+1 == len(s.list) && g.left == 0
}

// setBack follows the log's clock that was set back.
func (s *stages) setBack(now time.Time) {
	s.preparedAt = times.Earlier(s.preparedAt, now)
	for n := range s.list {
		g := &s.list[n]
		g.doneAt, g.approvedAt, g.lateSince = times.Earlier(g.doneAt, now), times.Earlier(g.approvedAt, now), times.Earlier(g.lateSince, now)
		g.doing.Since, g.doing.Ended = times.Earlier(g.doing.Since, now), times.Earlier(g.doing.Ended, now)
		g.waits.Soak = g.waits.SetBack(now)
	}
	s.soak.Soak = s.soak.SetBack(now)
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
	rollout.ResolvedStage
	// Begun tells that one of its hosts was admitted, or that its step has begun.
	Begun bool
	// Doing is how its step stands.
	Doing Doing
	// Phase is pending, waiting-for-approval, running, soaking, done, failed if it has a step
	// that failed or, when it ended before any of its hosts began, skipped.
	Phase                          string
	OutOfService, Upgraded, Failed int
}

// Done reports whether the stage has begun and all its hosts are done.
func (g Stage) Done() bool { return g.Begun && (g.Phase == stageDone || g.Phase == StageSoaking) }

// The phases of a stage.
const (
	stagePending  = "pending"
	stageApproval = "waiting-for-approval"
	stageRunning  = "running"
	StageSoaking  = "soaking"
	stageDone     = "done"
	StageFailed   = "failed"
	stageSkipped  = "skipped"
)

// Stages returns the stages as they stand at a time.
func (s *State) Stages(now time.Time) []Stage {
	views := make([]Stage, len(s.stages.list))
	for i := range s.stages.list {
		g := &s.stages.list[i]
		views[i] = Stage{ResolvedStage: g.ResolvedStage, Begun: g.begun, Doing: g.doing, Phase: s.stagePhase(i, now), OutOfService: s.roster.Out(i), Upgraded: g.upgraded, Failed: g.failed}
	}
	return views
}

// Prepared reports whether the run begins: all members have answered prepare, or it does
// not wait for them.
func (s *State) Prepared() bool { return !s.isPreparing() || s.Over() }

// Soaking returns the stage, of this run or of an earlier one, for whose soak the run waits; empty for none.
func (s *State) Soaking(now time.Time) string {
	if s.Over() || len(s.stages.list) == 0 || !s.stages.soaking(now) {
		return ""
	}
	return s.stages.soak.stage
}

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
	case g.doing.Trouble != "" && !g.doing.underWay():
		return StageFailed
	case g.left == 0 && g.Name == s.Soaking(now):
		return StageSoaking
	case g.left == 0 && g.begun:
		return stageDone
	case g.left == 0 || s.Over():
		return stageSkipped
	case i > s.stages.index:
		return stagePending
	case g.begun:
		return stageRunning
	case !s.isPreparing() && !s.stages.soaking(now) && !g.approved():
		return stageApproval
	}
	return stagePending
}
