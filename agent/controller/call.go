package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// errPending is what a look returns as long as there is no answer.
var errPending = errors.New("there is no answer yet")

// until calls look in the loop, now and after each change, and returns its result
// once the error is not errPending.
func until[T any](ctx context.Context, c *Controller, look func(*state) (T, error)) (T, error) {
	return waitFor(ctx, c, nil, look)
}

// Alive returns why the controller's loop does not answer before ctx ends. A loop that
// still reads the log, or begins anew, has not hung.
func (c *Controller) Alive(ctx context.Context) error {
	n := c.session()
	select {
	case <-n.loaded:
	default:
		return nil
	}
	answered := make(chan struct{})
	if err := n.post(ctx, func(*state) { close(answered) }); errors.Is(err, run.ErrNotReady) {
		return nil
	} else if err != nil {
		return fmt.Errorf("the controller of tenant %s does not answer: %w", c.o.Tenant, err)
	}
	select {
	case <-answered:
		return nil
	case <-n.ending:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the controller of tenant %s does not answer: %w", c.o.Tenant, ctx.Err())
	}
}

// attempt is until for what has no result but an error.
func (c *Controller) attempt(ctx context.Context, look func(*state) error) error {
	_, err := until(ctx, c, func(s *state) (struct{}, error) { return struct{}{}, look(s) })
	return err
}

// reached waits until a revision that has been read is at least number.
func (c *Controller) reached(ctx context.Context, number uint64, of func(*state) uint64) error {
	return c.attempt(ctx, func(s *state) error {
		if of(s) < number {
			return errPending
		}
		return nil
	})
}

// ask is until for a look that always has an answer.
func ask[T any](ctx context.Context, c *Controller, look func(*state) T) (T, error) {
	return until(ctx, c, func(s *state) (T, error) { return look(s), nil })
}

// waitFor is until for a caller that may ask something of the run. It waits until
// the session is loaded, because a state that is half read would be taken for the
// whole. The result travels over a channel: look may still run when the caller has
// gone.
func waitFor[T any](ctx context.Context, c *Controller, q *request, look func(*state) (T, error)) (T, error) {
	return waitAs(ctx, c, waiter{ctx: ctx, request: q}, look)
}

// waitAs is waitFor for a waiter that has all but its look.
func waitAs[T any](ctx context.Context, c *Controller, w waiter, look func(*state) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	w.look = func(s *state) bool {
		value, err := look(s)
		if errors.Is(err, errPending) {
			return false
		}
		answers <- answer{value, err}
		return true
	}
	var none T
	n := c.session()
	select {
	case <-n.loaded:
	case <-n.ending:
		return none, run.ErrNotReady
	case <-ctx.Done():
		return none, ctx.Err()
	}
	if err := n.post(ctx, func(s *state) { s.admit(&w) }); err != nil {
		return none, err
	}
	select {
	case a := <-answers:
		return a.value, a.err
	case <-n.ending:
		return none, run.ErrNotReady
	case <-ctx.Done():
		_ = n.post(context.WithoutCancel(ctx), func(*state) {}) // The loop drops this waiter then.
		return none, ctx.Err()
	}
}
