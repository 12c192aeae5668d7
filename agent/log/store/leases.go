package store

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// leasesBucket keeps who works for which host.
const leasesBucket = "osu-leases"

func openLeases(ctx context.Context, js jetstream.JetStream) (*divided, error) {
	kv, err := bucket(ctx, js, leasesBucket, "leases by tenant and host")
	if err != nil {
		return nil, err
	}
	return divide(js, kv), nil
}

// PutLease writes a host's lease if the entry there still has a revision, 0 when
// there never was one; otherwise it is ErrConflict, or ErrUnknown when that
// cannot be said yet. It returns the entry's new revision. key is the host's name
// as one subject token.
func (s *Store) PutLease(ctx context.Context, tenant, key string, body []byte, base uint64) (uint64, error) {
	revision, err := s.leases.Update(ctx, tenant+"."+key, body, base)
	if err != nil {
		return 0, fmt.Errorf("cannot write the lease of host %s of tenant %s: %w", key, tenant, translate(err))
	}
	return revision, nil
}

// Lease returns a host's lease and its revision, with no body when there is
// none. It asks the leader of the bucket: a KeyValue reads from any replica,
// which may be behind.
func (s *Store) Lease(ctx context.Context, tenant, key string) (body []byte, revision uint64, err error) {
	last, err := s.leases.last(ctx, tenant+"."+key)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read the lease of host %s of tenant %s: %w", key, tenant, err)
	}
	return last.body, last.revision, nil
}

// WatchLeases calls see with the lease of each of a tenant's hosts, now and
// after each change; with an empty key at the end of what was there when the
// watch began, with no body when the entry is gone. It returns when ctx ends or
// the store is gone.
func (s *Store) WatchLeases(ctx context.Context, tenant string, see func(key string, body []byte, revision uint64)) error {
	err := s.leases.watch(ctx, tenant, func(entry jetstream.KeyValueEntry) {
		switch {
		case entry == nil:
			see("", nil, 0)
		case entry.Operation() != jetstream.KeyValuePut:
			see(entry.Key()[len(tenant)+1:], nil, entry.Revision())
		default:
			see(entry.Key()[len(tenant)+1:], entry.Value(), entry.Revision())
		}
	})
	return fmt.Errorf("cannot watch the leases of tenant %s: %w", tenant, err)
}
