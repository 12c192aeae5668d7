package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// PutVersions keeps what a host last reported of its versions; key is its name
// as one subject token. What is there already is not written again.
func (s *Store) PutVersions(ctx context.Context, tenant, key string, body []byte) error {
	kept, err := s.Versions(ctx, tenant, key)
	if err != nil || bytes.Equal(kept, body) {
		return err
	}
	if _, err := s.versions.Put(ctx, tenant+"."+key, body); err != nil {
		return fmt.Errorf("cannot keep the versions of host %s: %w", key, err)
	}
	return nil
}

// Versions returns what PutVersions kept last; nil when there is none.
func (s *Store) Versions(ctx context.Context, tenant, key string) ([]byte, error) {
	entry, err := s.versions.Get(ctx, tenant+"."+key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the versions of host %s: %w", key, err)
	}
	return entry.Value(), nil
}

// WatchVersions calls see with the versions of each of a tenant's hosts, now
// and after each change. It returns when ctx ends or the store is gone.
func (s *Store) WatchVersions(ctx context.Context, tenant string, see func(key string, body []byte, at time.Time)) error {
	watcher, err := s.versions.Watch(ctx, tenant+".*", jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("cannot watch the versions of tenant %s: %w", tenant, err)
	}
	defer func() { _ = watcher.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case entry, open := <-watcher.Updates():
			if !open {
				return errors.New("the watch on the versions has ended")
			}
			if entry != nil { // nil is the end of the initial values.
				see(entry.Key()[len(tenant)+1:], entry.Value(), entry.Created())
			}
		}
	}
}
