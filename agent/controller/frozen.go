package controller

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// Frozen returns why a part of the configuration cannot be changed now: a run freezes changes. The error
// is then *run.Refused.
func (c *Controller) Frozen(ctx context.Context, change run.Change) error {
	return c.attempt(ctx, func(s *state) error { return s.ledger.Frozen(change) })
}
