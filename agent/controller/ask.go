package controller

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// ask has f run where the state is owned, and returns what f returns. What is
// half read at the start would be taken for what is, so it waits for that,
// too. The answer travels over a channel: f may still run when ask has given
// up.
func ask[T any](ctx context.Context, c *Controller, f func(*state) T) (T, error) {
	var none T
	select {
	case <-c.knows:
	case <-c.done:
		return none, run.ErrNotReady
	case <-ctx.Done():
		return none, ctx.Err()
	}
	answer := make(chan T, 1)
	if err := c.post(ctx, func(s *state) {
		if ctx.Err() == nil { // Who has left asks for nothing any more.
			answer <- f(s)
		}
	}); err != nil {
		return none, err
	}
	return await(ctx, c, answer)
}

// attempt is ask for what can fail only.
func (c *Controller) attempt(ctx context.Context, f func(*state) error) error {
	failed, err := ask(ctx, c, f)
	if err != nil {
		return err
	}
	return failed
}

// post has f run where the state is owned.
func (c *Controller) post(ctx context.Context, f func(*state)) error {
	select {
	case c.asked <- f:
		return nil
	case <-c.done:
		return run.ErrNotReady
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await waits for an answer from where the state is owned.
func await[T any](ctx context.Context, c *Controller, answer <-chan T) (T, error) {
	var none T
	select {
	case a := <-answer:
		return a, nil
	case <-c.done:
		return none, run.ErrNotReady
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
