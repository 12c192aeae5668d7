package tenantobject

import (
	"context"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
)

// begins is how long a creation for which there is no room waits for a deletion to begin. All
// of an apply that depend on nothing begin together.
const begins = 2 * time.Second

// removals are the deletions of objects of one kind and tenant in this process. A creation for
// which there is no room waits for them: Terraform carries out both at the same time.
type removals struct {
	mu sync.Mutex
	// moved is closed and replaced when a deletion begins or ends.
	moved        chan struct{}
	under, ended int
}

func newRemovals() *removals { return &removals{moved: make(chan struct{})} }

// removals returns what the process shares of the deletions of a tenant's objects.
func (r *Resource[T, M, P]) removals(tenant string) *removals {
	kept, _ := r.data.Once("removals of "+r.kind.TypeName+" "+tenant, func() any { return newRemovals() }).(*removals)
	return kept
}

// begin records that a deletion begins, until its end is called.
func (r *removals) begin() (end func()) {
	r.change(func() { r.under++ })
	return func() { r.change(func() { r.under, r.ended = r.under-1, r.ended+1 }) }
}

func (r *removals) change(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
	close(r.moved)
	r.moved = make(chan struct{})
}

func (r *removals) now() (under, ended int, moved <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.under, r.ended, r.moved
}

// await waits until more deletions have ended than had before. It reports false if none is
// under way and none begins for a moment.
func (r *removals) await(ctx context.Context, before int) bool {
	unbegun := time.After(begins)
	for ctx.Err() == nil {
		under, ended, moved := r.now()
		if ended > before {
			return true
		}
		late := unbegun
		if under > 0 {
			late = nil
		}
		select {
		case <-moved:
		case <-late:
			return false
		case <-ctx.Done():
		}
	}
	return false
}

// roomy creates an object, again after each deletion that may have made room for it.
func roomy[T any](ctx context.Context, r *removals, create func(context.Context) (found[T], error)) (found[T], error) {
	for {
		_, before, _ := r.now()
		written, err := create(ctx)
		if !client.Full(err) || !r.await(ctx, before) {
			return written, err
		}
	}
}
