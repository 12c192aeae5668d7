package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
)

// final reports whether asking again is vain.
func final(err error) bool {
	return err == nil || errors.Is(err, log.ErrTaken) || errors.Is(err, log.ErrRefused) || errors.Is(err, log.ErrAnswered)
}

// ask calls in the name of the worker that has the seat: the site runs f, with
// the world's lock held, each time that the call arrives.
func ask[T any](ctx context.Context, s *station, verb string, f func() (T, error)) (T, error) {
	var none T
	worker := s.worker()
	if err := s.taken(); err != nil {
		return none, fmt.Errorf("%s: %w", verb, err)
	}
	return call(ctx, s, verb, func() (T, error) {
		if h, has := s.w.heard(s.m.name, worker); !has {
			return none, fmt.Errorf("%w: worker %s", log.ErrTaken, h.worker)
		}
		return f()
	})
}

// call tries until there is an answer or ctx ends.
func call[T any](ctx context.Context, s *station, verb string, f func() (T, error)) (T, error) {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		a, err := once(ctx, s, verb, f)
		if final(err) {
			return a, err
		}
		if stopped := sleep(ctx, pause/2+s.w.rng.span("pause/"+s.m.name, 0, pause/2)); stopped != nil {
			return a, errors.Join(stopped, err)
		}
	}
}

type answered[T any] struct {
	answer T
	err    error
}

func once[T any](ctx context.Context, s *station, verb string, f func() (T, error)) (none T, err error) {
	if s.p.dead() {
		return none, errDead
	}
	w := s.w
	ctx, cancel := context.WithTimeout(ctx, 2*callLimit)
	defer cancel()
	done := make(chan answered[T], 3)
	if w.reachable(s.m.name) {
		w.transit("call", s.m.name, func() {
			if !w.reachable(s.m.name) {
				return
			}
			w.mu.Lock()
			a, err := f()
			w.mu.Unlock()
			if w.fault("call: answer lost", s.m.name) {
				return
			}
			w.after(w.rng.span("answer/"+s.m.name, 100*time.Microsecond, 20*time.Millisecond), func() { done <- answered[T]{a, err} })
		})
	}
	select {
	case a := <-done:
		return a.answer, a.err
	case <-ctx.Done():
		return none, fmt.Errorf("cannot call %s: %w: %w", verb, errNoReply, ctx.Err())
	}
}
