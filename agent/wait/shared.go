package wait

import (
	"context"
	"sync"
)

// Shared has many callers share one call at a time. All who ask while a call is under way
// get the result of the next one: a result is never older than the question.
type Shared[T any] struct {
	call func(context.Context) (T, error)
	mu   sync.Mutex
	// next is the call that those wait for who have asked since the last one began; nil
	// when nobody has.
	next *sharedCall[T]
	// calling tells that a goroutine makes the calls.
	calling bool
}

// sharedCall is one call. Its result is there once done is closed.
type sharedCall[T any] struct {
	done  chan struct{}
	value T
	err   error
	// waiting is how many callers wait. cancel ends the call once nobody does any more; nil
	// before it begins.
	waiting int
	cancel  context.CancelFunc
}

// NewShared makes a Shared of a call, whose context ends once nobody waits for it.
func NewShared[T any](call func(context.Context) (T, error)) *Shared[T] {
	return &Shared[T]{call: call}
}

// Get returns the result of a call that begins no earlier than Get, or the error of ctx once
// that ends.
func (s *Shared[T]) Get(ctx context.Context) (T, error) {
	result := s.enter()
	defer s.leave(result)
	select {
	case <-result.done:
		return result.value, result.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (s *Shared[T]) enter() *sharedCall[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &sharedCall[T]{done: make(chan struct{})}
	}
	s.next.waiting++
	if !s.calling {
		s.calling = true
		go s.run()
	}
	return s.next
}

func (s *Shared[T]) leave(result *sharedCall[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if result.waiting--; result.waiting == 0 && result.cancel != nil {
		result.cancel()
	}
}

// run calls until nobody waits.
func (s *Shared[T]) run() {
	for {
		ctx, result := s.begin()
		if result == nil {
			return
		}
		result.value, result.err = s.call(ctx)
		close(result.done)
	}
}

// begin returns the next call and its context; nil when nobody waits for one, which ends
// the calls.
func (s *Shared[T]) begin() (context.Context, *sharedCall[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	result := s.next
	s.next = nil
	if s.calling = result != nil && result.waiting > 0; !s.calling {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	result.cancel = cancel
	return ctx, result
}
