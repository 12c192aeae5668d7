package view

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Pinned is what a rollback of a run needs of it.
func Pinned(r *run.State) *v1.PinnedRun {
	p := &v1.PinnedRun{Rollout: r.Rollout()}
	for _, o := range r.Outputs() {
		p.Outputs = append(p.Outputs, v1.StepOutputs{Stage: o.Stage, Names: o.Names, Sealed: o.Sealed})
	}
	return p
}
