package tenantobject

import (
	"context"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
)

// prefetch is what one request has told of all objects of a kind that a tenant has, so that
// a refresh of many of them takes no request for each.
//
// A refresh of one object asks for that one: only the second one that a process refreshes
// makes it ask for all. Each object is handed out once, and none after the process has
// written one of them: who reads after that, or a second time, asks the server.
type prefetch[T any] struct {
	list func(ctx context.Context) (map[string]client.Stored[T], error)

	mu       sync.Mutex
	refreshs int
	// under is closed when the request under way has ended; nil if none is.
	under chan struct{}
	// asked is set once the request has been made: there is no second one.
	asked, written bool
	objects        map[string]client.Stored[T]
}

// take returns an object as the list has it, and whether it does.
func (p *prefetch[T]) take(ctx context.Context, name string) (client.Stored[T], bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refreshs++
	switch {
	case p.refreshs == 1 || p.written:
		return client.Stored[T]{}, false
	case !p.asked:
		p.asked, p.under = true, make(chan struct{})
		p.mu.Unlock()
		objects, err := p.list(ctx)
		p.mu.Lock()
		if err == nil && !p.written {
			p.objects = objects
		}
		close(p.under)
		p.under = nil
	case p.under != nil:
		under := p.under
		p.mu.Unlock()
		select {
		case <-under:
		case <-ctx.Done():
		}
		p.mu.Lock()
	}
	object, ok := p.objects[name]
	delete(p.objects, name)
	return object, ok
}

// forget drops what has been read, because an object is written.
func (p *prefetch[T]) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written, p.objects = true, nil
}

// listed is an object of the API that a refresh may read with all others of its tenant. A
// read that a write is based on asks the server.
type listed[T any] struct {
	store[T]
	name    string
	objects *prefetch[T]
}

// refresh gets the object, from the list if that has it. One that the list lacks is asked
// for: the answer reports whether it is gone.
func (s listed[T]) refresh(ctx context.Context) (client.Stored[T], error) {
	if object, ok := s.objects.take(ctx, s.name); ok {
		return object, nil
	}
	return s.Get(ctx)
}

func (s listed[T]) Put(ctx context.Context, base client.Stored[T], value T, when client.Precondition) (client.Stored[T], error) {
	s.objects.forget()
	return s.store.Put(ctx, base, value, when)
}

func (s listed[T]) Delete(ctx context.Context, when client.Precondition) error {
	s.objects.forget()
	return s.store.Delete(ctx, when)
}

// refresh gets an object for a refresh.
func refresh[T any](ctx context.Context, at store[T]) (client.Stored[T], error) {
	if many, ok := at.(listed[T]); ok {
		return many.refresh(ctx)
	}
	return at.Get(ctx)
}
