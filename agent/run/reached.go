package run

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// reachedBy returns how far the runs of the environment have come with this one, which ends. After a
// rollback that has rolled back anything the next run begins with the first stage.
func (s *State) reachedBy() *message.Reached {
	switch {
	case s.Reached == nil, s.IsRollback() && s.touched:
		return nil
	case s.IsRollback():
		return s.Reached
	}
	did := message.Reached{Since: s.Key()}
	for n := range s.stages.list {
		did.Stages = append(did.Stages, s.stageReached(&s.stages.list[n]))
	}
	_, passed := s.stages.doneAt()
	return reached.After(s.Reached, did, passed && s.Until == "" && !s.Chosen)
}

// stageReached returns what the run has done in one of its stages.
func (s *State) stageReached(g *stage) message.ReachedStage {
	did := message.ReachedStage{Name: g.Name, Step: g.Step != nil}
	if g.stepDone() {
		did.Run, did.Outputs = s.Key(), g.doing.Outputs
	}
	for i := g.first; i < g.first+g.Size; i++ {
		if m := &s.members[i]; m.final == Upgraded {
			did.Run, did.Done = s.Key(), append(did.Done, m.Name)
		}
	}
	if _, before := s.Reached.Closed(); g.PointOfNoReturn && g.begun && before.IsZero() {
		did.Closed = s.closedAt
	}
	return did
}
