package tenantobject

// Terraform carries out creations and deletions at the same time. In this file is what they owe
// each other: an object that this process creates is not deleted by the resource that had it
// before, and a creation for which there is no room waits for the deletions.

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
)

// made begins the key of an object that a resource of this process has created.
const made = "made "

// creation is what a creation made. Its id is in the private state of the resource.
type creation[T any] struct {
	id   string
	want T
}

// keepMade records that an object was created.
func (r *Resource[T, M, P]) keepMade(ctx context.Context, s Private, at Key, want T, diags *diag.Diagnostics) {
	id := rand.Text()
	set(ctx, s, creationKey, id, diags)
	r.data.Remember(made+r.kind.object(at), creation[T]{id, want})
}

// madeByOther returns what another resource of this process has created of an object that a
// resource is about to delete: with create_before_destroy Terraform creates first.
func (r *Resource[T, M, P]) madeByOther(ctx context.Context, s Private, at Key, diags *diag.Diagnostics) (want T, found bool) {
	kept, _ := r.data.Recall(made + r.kind.object(at))
	last, found := kept.(creation[T])
	var own string
	get(ctx, s, creationKey, &own, diags)
	return last.want, found && last.id != own
}

// turn waits until no other resource of this process creates or deletes the object, and lets
// others wait until end is called. Objects that resources own in parts have no turns.
func (r *Resource[T, M, P]) turn(ctx context.Context, at Key) (end func(), err error) {
	if len(r.kind.Parts) > 1 {
		return func() {}, nil
	}
	turn, _ := r.data.Once("turn of "+r.kind.object(at), func() any { return make(chan struct{}, 1) }).(chan struct{})
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// warnOfKept warns that what a replacement is made for did not happen, because the deletion comes
// after the creation.
func (k Kind[T]) warnOfKept(diags *diag.Diagnostics, at Key) {
	if len(k.Computed) > 0 { // A secret is sent again.
		diags.AddWarning("The "+k.Noun+" was not made anew", sentence(k.owner(at))+
			" was created again before the old one was deleted, so it is still the old one, and what could log in with it still can.\n\n"+
			"To make it anew, replace it without create_before_destroy.")
	}
}

// begins is how long a creation for which there is no room waits for a deletion to begin. All
// of an apply that depend on nothing begin together.
const begins = 2 * time.Second

// removals are the deletions of objects of one kind and tenant in this process.
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
