package controller

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
)

// configure takes in the tenant's configuration. One that cannot be read
// closes all windows: what it meant to forbid is unknown.
func (s *state) configure(seen store.Seen) {
	s.config, s.windows = nil, nil
	err := seen.Err
	if err == nil && seen.Config != nil {
		s.config = seen.Config
		s.windows, err = s.config.Windows()
	}
	if err != nil {
		s.Logger.Error("the configuration cannot be used; no window is open", "tenant", s.Tenant, "error", err)
	}
	s.configured = true
	s.learnt()
	s.revision.reach(seen.Number)
	s.changed()
}

// Configured returns once the configuration's revision of a number, or a later
// one, counts, so that whoever wrote it finds it in what the controller says
// and does.
func (c *Controller) Configured(ctx context.Context, number uint64) error {
	return c.until(ctx, func(s *state) *mark { return &s.revision }, number)
}
