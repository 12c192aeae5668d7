package controller

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// configure takes in the tenant's configuration. One that cannot be read
// closes all windows and holds up the run under way: what it meant to forbid is
// unknown.
func (s *state) configure(seen store.Seen[v1.OSUpgrade]) {
	s.config, s.windows, s.configErr = nil, nil, seen.Err
	if seen.Err == nil && seen.Value != nil {
		s.config = seen.Value
		s.windows, s.configErr = s.config.Windows()
	}
	if s.configErr != nil {
		s.Logger.Error("the configuration cannot be used; no window is open and no run goes on", "tenant", s.Tenant, "error", s.configErr)
	}
	s.reschedule(seen.At)
	s.configured = true
	s.learnt()
	s.revision = max(s.revision, seen.Number)
	s.changed()
}

// Configured returns once the configuration's revision of a number, or a later
// one, counts, so that whoever wrote it finds it in what the controller says
// and does.
func (c *Controller) Configured(ctx context.Context, number uint64) error {
	return c.reached(ctx, number, func(s *state) uint64 { return s.revision })
}
