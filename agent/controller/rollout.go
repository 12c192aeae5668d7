package controller

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/rollout"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// setRollout takes in the tenant's rollout. While it cannot be read no run is
// opened, and the one under way starts no further host: what it meant to
// forbid is unknown.
func (s *state) setRollout(seen store.Seen[v1.Rollout]) {
	s.rollout, s.rolloutErr = seen.Value, seen.Err
	if seen.Err != nil {
		s.Logger.Error("the rollout cannot be used; no run is opened", "tenant", s.Tenant, "error", seen.Err)
	}
	s.rolledOut = true
	s.learnt()
	s.rolloutSeen.reach(seen.Number)
	s.changed()
}

// RolloutSeen returns once the rollout's revision of a number, or a later one,
// counts.
func (c *Controller) RolloutSeen(ctx context.Context, number uint64) error {
	return c.until(ctx, func(s *state) *mark { return &s.rolloutSeen }, number)
}

// plan resolves the rollout for hosts.
func (s *state) plan(hosts []rollout.Host) (rollout.Planned, error) {
	if s.rolloutErr != nil {
		return rollout.Planned{}, s.rolloutErr
	}
	return rollout.Plan(s.rollout, hosts)
}

// held returns the event that pauses or resumes the run under way because the
// rollout says so; false when it says what is.
func (s *state) held(current *run.State) (message.Event, bool) {
	hold := s.rolloutErr != nil || s.rollout != nil && s.rollout.Paused
	switch {
	case current.IsAborting():
	case hold && current.Paused == nil:
		e := message.Event{Event: message.Paused, By: message.ByRollout}
		if s.rolloutErr != nil {
			e.Why = message.CleanText("it cannot be read: " + s.rolloutErr.Error())
		}
		return e, true
	case !hold && current.Paused != nil && current.Paused.By == message.ByRollout:
		return message.Event{Event: message.Resumed, By: message.ByRollout}, true
	}
	return message.Event{}, false
}
