package controller

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/promotion"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// A run of all hosts to the release that an environment had before is the rollback of the runs to the
// present one, whether somebody starts it or a window opens it. Which runs these are is on the log; what
// they did is in the history, which is read beside the loop.

// goesBack returns the newest of the runs that an environment rolls back by going to a release; 0 if it
// goes there by an ordinary run. It does after a rollback of these runs that has found no way back: else
// nobody could ever get to that release.
func (e *environment) goesBack(pinned *release.Pin) uint64 {
	if pinned == nil || e.ledger.Current() != nil {
		return 0
	}
	of, newest := promotion.GoesBack(e.ledger.Promotion(), pinned.Ref()), e.ledger.Newest()
	if newest != nil && newest.RollsBack.Of == of && newest.FoundNoWayBack() {
		return 0
	}
	return of
}

// backByName returns what a start rolls back that goes to the release which the environment had before. It
// is zero for a start that goes elsewhere, or if there is no way back; that is an ordinary run.
func (c *Controller) backByName(ctx context.Context, request v1.Start) (choice, error) {
	of, err := ask(ctx, c, func(s *state) uint64 {
		env, err := s.startsIn(request, choice{}, func(v1.Start) string { return "" })
		if err != nil {
			return 0 // The start says so.
		}
		return s.goesBackBy(env, s.Now(), request)
	})
	if err != nil || of == 0 {
		return choice{}, err
	}
	chosen, err := c.chooseRollback(ctx, v1.Start{RollbackOf: of})
	if isRefused(err) {
		chosen, err = choice{}, nil
	}
	chosen.byName = of
	return chosen, err
}

// mayGoBack reports whether a start may be a rollback by the release to which it goes: one of all hosts and
// stages.
func mayGoBack(request v1.Start) bool {
	return !request.IsRollback() && !request.OfChosen() && request.Until == ""
}

// goesBackBy is goesBack for the release to which a start goes.
func (s *state) goesBackBy(env *environment, now time.Time, request v1.Start) uint64 {
	pinned, err := s.releaseToStart(env, now, request, nil)
	if err != nil {
		return 0 // The start says so.
	}
	return env.goesBack(pinned)
}

func isRefused(err error) bool {
	_, refused := errors.AsType[*run.Refused](err)
	return refused
}

// windowRollback is what a window rolls back: the runs that belong to run of, as the history was when run newest
// was the newest one. The zero value is that of nothing.
type windowRollback struct {
	of, newest uint64
	// reading tells that it is being read, again is when to read it again after that has failed.
	reading bool
	again   time.Time
	failing throttle.Failing
	// found is nil if there is no way back.
	found *rollbackScope
}

// readBackAgain is the wait before the history is read again that could not be read.
const readBackAgain = 5 * time.Second

// backByWindow returns what a window rolls back by going to a release; nil if it opens an ordinary run. It is
// not known before it was read: then again is when to ask again, zero for when it was.
func (s *state) backByWindow(ctx context.Context, env *environment, pinned *release.Pin, now time.Time) (back *rollbackScope, known bool, again time.Time) {
	of, newest := env.goesBack(pinned), env.ledger.Key()
	w := &env.back
	switch {
	case of == 0:
		*w = windowRollback{reading: w.reading}
		return nil, true, time.Time{}
	case w.reading:
		return nil, false, time.Time{}
	case w.of == of && w.newest == newest:
		return w.found, true, time.Time{}
	case now.Before(w.again):
		return nil, false, w.again
	}
	w.reading = true
	go func() {
		chosen, err := s.chooseRollback(ctx, v1.Start{RollbackOf: of})
		if isRefused(err) {
			chosen, err = choice{}, nil
		}
		s.call(ctx, func() {
			w.reading = false
			w.failing.Note(s.Logger, s.Now(), err, "cannot read what a window rolls back; trying again", "what a window rolls back can be read again", "tenant", s.Tenant, "run", of)
			if w.again = s.Now().Add(readBackAgain); err == nil {
				w.of, w.newest, w.found, w.again = of, newest, chosen.back, time.Time{}
			}
			s.stale = true
			env.rouse()
		})
	}()
	return nil, false, time.Time{}
}
