package run

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestInvariantsOfRollbacks plays a run and the rollback of it, the rollback of that, and so on. Steps have
// an undo or not, a stage may be the point of no return, and releases are withdrawn in mid-run.
func TestInvariantsOfRollbacks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := newProperty(rt)
		e := drawOpening(rt, p.now)
		e.NotAfter, e.Rollout.MinPrepared, e.Rollout.MaxFailures = p.now.Add(8*time.Hour), 0, 10
		for n := range e.Rollout.Stages {
			if s := &e.Rollout.Stages[n]; s.Step != nil && rapid.IntRange(0, 3).Draw(rt, "has an undo") > 0 {
				s.Step.Undo = s.Step.Do
			}
		}
		if rapid.IntRange(0, 2).Draw(rt, "has a point of no return") == 0 {
			e.Rollout.Stages[len(e.Rollout.Stages)-1].PointOfNoReturn = true
		}
		for some := true; some; e, some = p.rollback() {
			p.openRun(e)
			for range rapid.IntRange(0, 40).Draw(rt, "events that go well") {
				happens := []func(){p.comesThrough, p.comesThrough, p.outcome1, p.withdraws, p.random}
				happens[rapid.IntRange(0, len(happens)-1).Draw(rt, "happens")]()
				p.drive()
				p.check()
			}
			p.playRun()
		}
	})
}

// withdraws is somebody who withdraws the release of the run: it ends, and asks no further host.
func (p *property) withdraws() {
	if p.opened.Release == nil || rapid.IntRange(0, 9).Draw(p.rt, "is withdrawn") > 0 {
		return
	}
	p.seen.Withdrawn = &message.Aborted{By: "ann", Why: "release spring is withdrawn: it is slow"}
	p.drive()
	p.seen.Withdrawn = nil
	if current := p.in().Current(); current != nil && current.aborted == nil {
		p.rt.Fatalf("at %s the run goes on with a release that is withdrawn", p.now.Sub(epoch))
	}
}

// rollback returns how the rollback of the run that has ended is opened: of its hosts that were upgraded and
// its steps that are done and have an undo, backwards. There is none after the point of no return, or if
// nothing was done.
func (p *property) rollback() (e message.Opened, some bool) {
	ended := p.in().Newest()
	if !ended.WayBack().Closed.IsZero() || rapid.IntRange(0, 4).Draw(p.rt, "is rolled back") == 0 {
		return e, false
	}
	e = message.Opened{
		Trigger: message.TriggerManual, By: "ann", Why: "it is slow", NotAfter: p.now.Add(8 * time.Hour), RollbackOf: ended.Key(), Reached: p.in().ReachedToRetry(),
		Rollout: drawPolicy(p.rt), Roster: p.in().Roster().Opening(nil, nil),
	}
	for _, g := range slices.Backward(ended.Stages(p.now)) {
		s := rollout.ResolvedStage{Stage: g.Stage, MaxUnavailable: 1, Undo: g.Step != nil && !g.Undo}
		s.PointOfNoReturn = false
		switch {
		case g.Step != nil && g.Done() && (g.Undo || g.Step.Undo != nil):
			e.Rollout.Stages = append(e.Rollout.Stages, s)
			continue
		case g.Step != nil:
			continue
		}
		for _, h := range ended.Hosts() {
			if h.Stage == g.Name && h.Status == Upgraded && !h.UpToDate {
				e.Members, s.Size = append(e.Members, h.Name), s.Size+1
			}
		}
		if s.Size > 0 {
			e.Rollout.Stages = append(e.Rollout.Stages, s)
		}
	}
	e.Rollout.MinPrepared = rapid.IntRange(0, len(e.Members)).Draw(p.rt, "min-prepared")
	return e, len(e.Rollout.Stages) > 0
}
