package api

import (
	"errors"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// freezing is how runs that freeze changes freeze an object.
type freezing[T any] struct {
	// environment is that whose runs freeze the object; empty for those of all.
	environment string
	// holds reports whether a change can only hold runs, so that it is always possible; nil means that
	// no change is.
	holds func(now stored[T], next T) bool
}

// change returns what a run that freezes changes is asked about; next is nil for a deletion.
func (f freezing[T]) change(now stored[T], next *T) run.Change {
	return run.Change{Environment: f.environment, Holds: f.holds != nil && next != nil && f.holds(now, *next)}
}

// frozen returns why the object cannot be changed now. next is nil for a deletion.
func (o *object[T]) frozen(c *call, now stored[T], next *T) error {
	if o.freezing == nil {
		return nil
	}
	err := c.controller.Frozen(c.Context(), o.freezing.change(now, next))
	if _, refused := errors.AsType[*run.Refused](err); err == nil || refused {
		return err
	}
	// The controller does not answer. Only where runs may freeze changes is that a reason to wait.
	freezes, unread := o.server.freezes(c)
	switch {
	case unread != nil:
		return unread
	case freezes:
		return err
	}
	return nil
}

// freezes reports whether a rollout of the tenant is to freeze changes.
func (s *server) freezes(c *call) (bool, error) {
	rollout, _, err := s.Store.Rollout(c.Context(), c.tenant)
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDamaged) || rollout.Value.FreezeChanges {
		return rollout.Value.FreezeChanges, err
	}
	all, err := s.declared(c)
	for _, e := range all {
		if e.Rollout != nil && e.Rollout.FreezeChanges {
			return true, err
		}
	}
	return false, err
}

// The changes that can only hold runs.
var (
	rolloutHolds     = func(now stored[v1.Rollout], next v1.Rollout) bool { return v1.OnlyPauses(now.value.Value, next) }
	environmentHolds = func(now stored[v1.Environment], next v1.Environment) bool {
		return v1.OnlyPausesEnvironment(now.value.Value, next)
	}
	calendarHolds = func(now stored[v1.Calendar], next v1.Calendar) bool {
		if !now.exists {
			return next.Freezes()
		}
		return v1.OnlyFreezes(now.value.Value, next)
	}
)
