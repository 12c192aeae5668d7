package controller

import (
	"context"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/plan"
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
	s.rolloutSeen = max(s.rolloutSeen, seen.Number)
	s.changed()
}

// RolloutSeen returns once the rollout's revision of a number, or a later one,
// counts.
func (c *Controller) RolloutSeen(ctx context.Context, number uint64) error {
	return c.reached(ctx, number, func(s *state) uint64 { return s.rolloutSeen })
}

// plan resolves the rollout for hosts.
func (s *state) plan(hosts []plan.Host) (plan.Plan, error) {
	if s.rolloutErr != nil {
		return plan.Plan{}, s.rolloutErr
	}
	return plan.New(s.rollout, hosts)
}

// held returns the event that pauses or resumes the run under way because the
// rollout says so, or because something cannot be read; false when the run is
// paused, or not, for what holds it up now. What somebody has paused is left to
// them.
func (s *state) held(current *run.State) (message.Event, bool) {
	hold, now := s.hold(), current.Paused
	switch {
	case current.IsAborting():
	case now == nil && hold != nil:
		return *hold, true
	case now == nil || !message.GoesOn(now.By):
	case hold == nil || hold.By != now.By || hold.By == message.ByAgent && hold.Why != now.Why:
		return message.Event{Event: message.Resumed, By: now.By}, true
	}
	return message.Event{}, false
}

// hold is what holds up every run now; nil when nothing does.
func (s *state) hold() *message.Event {
	if err := s.unreadable(); err != nil {
		return &message.Event{Event: message.Paused, By: message.ByAgent, Why: message.CleanText(err.Error())}
	}
	switch {
	case s.rolloutErr != nil:
		why := fmt.Sprintf("the rollout cannot be read: %v; write it anew", s.rolloutErr)
		return &message.Event{Event: message.Paused, By: message.ByAgent, Why: message.CleanText(why)}
	case s.rollout != nil && s.rollout.Paused:
		return &message.Event{Event: message.Paused, By: message.ByRollout}
	}
	return nil
}
