package tenantobject

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
)

// Shared is one object of a tenant of which many resources own an entry each. All
// resources of a process share it: they read it once and write it one after the other, each
// write based on the one before. Another process may write in between; then the write
// starts over.
type Shared[T any] struct {
	store store[T]
	mu    sync.Mutex
	last  found[T]
	known bool
}

// SharedOf returns what the process shares of an object.
func SharedOf[T any](data *providerdata.Data, api *client.Client, object client.Object[T], tenant string) *Shared[T] {
	kept := data.Once(fmt.Sprintf("shared %T %s", object, tenant), func() any {
		return &Shared[T]{store: remote[T]{api, object, tenant}}
	})
	shared, _ := kept.(*Shared[T])
	return shared
}

// Get returns the object; an absent one is the zero T. It asks the server only if the
// process has neither read nor written the object yet.
func (s *Shared[T]) Get(ctx context.Context) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.load(ctx)
	return s.last.Value, err
}

func (s *Shared[T]) load(ctx context.Context) error {
	if s.known {
		return nil
	}
	stored, err := s.store.Get(ctx)
	if err != nil && !removed(ctx, s.store, err) {
		return err
	}
	s.last, s.known = found[T]{stored, err == nil}, true
	return nil
}

// Edit replaces the object by what edit returns, and starts over while others write. Its
// limit is that of ctx. An edit that returns done leaves the object as it is.
func (s *Shared[T]) Edit(ctx context.Context, edit func(T) (next T, done bool, err error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for try := 0; ; try++ {
		if err := s.load(ctx); err != nil {
			return err
		}
		next, done, err := edit(s.last.Value)
		if done || err != nil {
			return err
		}
		when := client.Precondition{IfMatch: s.last.ETag}
		if !s.last.exists {
			when = client.Precondition{IfNoneMatch: "*"}
		}
		written, err := s.store.Put(ctx, s.last.Stored, next, when)
		s.last, s.known = found[T]{written, true}, err == nil && written.ETag != ""
		if !client.HasStatus(err, http.StatusPreconditionFailed) {
			return err
		}
		if id := BlockingRun(err); id != 0 {
			err = s.store.AwaitRun(ctx, id)
		} else {
			err = pause(ctx, min(try, tries))
		}
		if err != nil {
			return errors.Join(fmt.Errorf("somebody else changed it during each of %d tries", try+1), err)
		}
	}
}
