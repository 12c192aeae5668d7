package view

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// stages shows the stages of a run and, if it goes on where others ended, or ends after a stage, those
// that earlier runs have done and those of later runs, in the order of the rollout.
func stages(r *run.State, now time.Time) []v1.RunStage {
	var own, all []v1.RunStage
	for _, g := range r.Stages(now) {
		own = append(own, v1.RunStage{
			Name: g.Name, Phase: g.Phase, Hosts: g.Size, MaxUnavailable: g.MaxUnavailable,
			OutOfService: g.OutOfService, Upgraded: g.Upgraded, Failed: g.Failed, Step: runStep(g), PointOfNoReturn: g.PointOfNoReturn,
		})
	}
	if r.Reached == nil || r.IsRollback() {
		return own
	}
	later, soaking := false, r.Soaking(now)
	for _, s := range r.Reached.Stages {
		if n := slices.IndexFunc(own, func(g v1.RunStage) bool { return g.Name == s.Name }); n >= 0 {
			all = append(all, own[n])
		} else if other := otherStage(s, later); other.Phase != "" {
			if s.Name == soaking {
				other.Phase = run.StageSoaking
			}
			all = append(all, other)
		}
		later = later || s.Name == r.Until
	}
	return all
}

// otherStage shows a stage that is not in the run; one without a phase has nothing to show.
func otherStage(s message.ReachedStage, later bool) v1.RunStage {
	shown := v1.RunStage{Name: s.Name, Hosts: len(s.Done), Upgraded: len(s.Done), DoneIn: s.Run, PointOfNoReturn: !s.Closed.IsZero()}
	switch {
	case s.Run != 0:
		shown.Phase = v1.StageDone
	case later && (s.Step || len(s.Left) > 0):
		shown.Phase, shown.Hosts = v1.StageLater, len(s.Left)
	}
	if s.Step {
		shown.Step = &v1.RunStep{}
		if s.Outputs != nil {
			shown.Step.Gives = s.Outputs.Names
		}
	}
	return shown
}
