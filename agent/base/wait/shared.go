package wait

import (
	"context"
	"sync"
)

// Shared has many callers share one call at a time. All who ask while a call is under way
// share the next one: no caller gets the result of a call that began before it asked, which
// golang.org/x/sync/singleflight would give it.
type Shared struct {
	call func(context.Context) error
	mu   sync.Mutex
	// next is the call that those wait for who have asked since the last one began; nil
	// when nobody has.
	next *sharedCall
	// calling tells that a goroutine makes the calls.
	calling bool
}

// sharedCall is one call. Its result is err, once done is closed.
type sharedCall struct {
	done chan struct{}
	err  error
	// waiting is how many callers wait. cancel ends the call when the last of them leaves; nil
	// before the call begins.
	waiting int
	cancel  context.CancelFunc
}

// NewShared makes a Shared of a call, whose context ends once nobody waits for it.
func NewShared(call func(context.Context) error) *Shared { return &Shared{call: call} }

// Do returns the result of a call that begins no earlier than Do, or the error of ctx once ctx
// ends.
func (s *Shared) Do(ctx context.Context) error {
	shared := s.enter()
	defer s.leave(shared)
	select {
	case <-shared.done:
		return shared.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Shared) enter() *sharedCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &sharedCall{done: make(chan struct{})}
	}
	s.next.waiting++
	if !s.calling {
		s.calling = true
		go s.run()
	}
	return s.next
}

func (s *Shared) leave(shared *sharedCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shared.waiting--; shared.waiting == 0 && shared.cancel != nil {
		shared.cancel()
	}
}

// run calls until nobody waits.
func (s *Shared) run() {
	for {
		ctx, shared := s.begin()
		if shared == nil {
			return
		}
		shared.err = s.call(ctx)
		close(shared.done)
	}
}

// begin returns the next call and its context; nil when nobody waits for one, which ends
// the calls.
func (s *Shared) begin() (context.Context, *sharedCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shared := s.next
	s.next = nil
	if s.calling = shared != nil && shared.waiting > 0; !s.calling {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	shared.cancel = cancel
	return ctx, shared
}
