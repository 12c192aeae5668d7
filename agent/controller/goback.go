package controller

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// backByName returns what a start rolls back that goes to the release which the environment had before:
// the runs to the present one. It is zero for a start that goes elsewhere, or if there is no way back; that
// is an ordinary run.
func (c *Controller) backByName(ctx context.Context, request v1.Start) (choice, error) {
	of, err := ask(ctx, c, func(s *state) uint64 { return s.goesBack(request, s.Now()) })
	if err != nil || of == 0 {
		return choice{}, err
	}
	chosen, err := c.chooseRollback(ctx, v1.Start{RollbackOf: of})
	if isRefused(err) {
		return choice{}, nil
	}
	return chosen, err
}

func isRefused(err error) bool {
	_, refused := errors.AsType[*run.Refused](err)
	return refused
}

// goesBack returns the newest run to the release of an environment if a start goes to the one that the
// environment had before, and the way back is open; 0 otherwise.
func (s *state) goesBack(request v1.Start, now time.Time) uint64 {
	env, err := s.startsIn(request, choice{}, func(v1.Start) string { return "" })
	if err != nil {
		return 0 // The start says so.
	}
	p := env.ledger.Promotion()
	if p == nil || p.Was == nil || p.Closed != nil || p.RolledBack != nil || env.ledger.Current() != nil {
		return 0
	}
	if pinned, err := s.releaseToStart(env, now, request, nil); err != nil || pinned == nil || pinned.Ref() != *p.Was {
		return 0
	}
	return p.Last
}
