package run

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/promotion"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// promoted returns how far the environment has come to a release with what this run has done so far.
func (s *State) promoted() *message.Promotion {
	if !s.touched {
		return s.Promotion
	}
	did := promotion.Run{
		ID: s.Key(), Chosen: s.Chosen, Touched: true,
		RollbackOf: s.RollsBack.Of, Back: message.RolledBackIn{Run: s.Key(), At: s.OpenedAt, By: s.By, Why: s.Why},
	}
	if s.Release != nil {
		did.Release = s.Release.Ref()
	}
	for n := range s.stages.list {
		g := &s.stages.list[n]
		if g.stepDone() {
			did.Steps = append(did.Steps, g.Name)
		}
		if g.PointOfNoReturn && g.begun {
			did.Closed = &message.Closed{Stage: g.Name, Run: s.Key(), At: s.closedAt}
		}
	}
	return promotion.After(s.Promotion, did)
}
