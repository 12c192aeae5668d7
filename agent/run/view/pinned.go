package view

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Pinned is what a rollback of a run needs of it.
func Pinned(r *run.State) *v1.PinnedRun {
	p := &v1.PinnedRun{Rollout: r.Rollout()}
	for _, g := range r.Stages(r.OpenedAt) {
		if g.Doing.Outputs != nil {
			p.Outputs = append(p.Outputs, v1.StepOutputs{Stage: g.Name, Names: g.Doing.Outputs.Names, Sealed: g.Doing.Outputs.Sealed})
		}
	}
	return p
}
