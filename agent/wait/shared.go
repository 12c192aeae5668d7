package wait

import (
	"context"
	"sync"
)

// Shared has many callers share one call at a time. All who ask while a call is under way
// get the result of the next one: a result is never older than the question.
type Shared[T any] struct {
	call func() (T, error)
	mu   sync.Mutex
	// next is what those wait for who have asked since the last call began; nil when
	// nobody has.
	next *shared[T]
	// calling tells that a goroutine makes the calls.
	calling bool
}

// shared is the result of a call, once done is closed.
type shared[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// NewShared makes a Shared of a call, which has to end by itself: no caller's context ends
// it.
func NewShared[T any](call func() (T, error)) *Shared[T] { return &Shared[T]{call: call} }

// Get returns the result of a call that begins after Get, or the error of ctx once that ends.
func (s *Shared[T]) Get(ctx context.Context) (T, error) {
	result := s.enter()
	select {
	case <-result.done:
		return result.value, result.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (s *Shared[T]) enter() *shared[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &shared[T]{done: make(chan struct{})}
	}
	if !s.calling {
		s.calling = true
		go s.run()
	}
	return s.next
}

// run calls until nobody waits.
func (s *Shared[T]) run() {
	for {
		result := s.leave()
		if result == nil {
			return
		}
		result.value, result.err = s.call()
		close(result.done)
	}
}

// leave returns what is to be called for; nil when nobody waits, which ends the calls.
func (s *Shared[T]) leave() *shared[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	result := s.next
	s.next, s.calling = nil, result != nil
	return result
}
