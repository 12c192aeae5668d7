package controller

import (
	"context"
	"slices"
)

// mark is how far a controller has read something, and who waits until it has
// read further: what was written before is then seen by whoever asks.
type mark struct {
	reached uint64
	waiting []awaiting
}

type awaiting struct {
	number uint64
	seen   chan struct{}
}

// reach moves the mark and lets go on whoever waits for that.
func (m *mark) reach(number uint64) {
	m.reached = max(m.reached, number)
	m.waiting = slices.DeleteFunc(m.waiting, func(a awaiting) bool {
		if a.number > m.reached {
			return false
		}
		close(a.seen)
		return true
	})
}

// until returns once a mark has reached a number.
func (c *Controller) until(ctx context.Context, of func(*state) *mark, number uint64) error {
	a := awaiting{number: number, seen: make(chan struct{})}
	err := c.attempt(ctx, func(s *state) error {
		m := of(s)
		m.waiting = append(m.waiting, a)
		m.reach(0)
		return nil
	})
	if err == nil {
		_, err = await(ctx, c, a.seen)
	}
	if err != nil {
		_ = c.post(context.WithoutCancel(ctx), func(s *state) { of(s).leave(a) })
	}
	return err
}

// leave drops somebody who waits no more.
func (m *mark) leave(gone awaiting) {
	m.waiting = slices.DeleteFunc(m.waiting, func(a awaiting) bool { return a.seen == gone.seen })
}
