package store

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// PutSeat writes who has a host's seat if the entry there still has the number
// base, 0 when there never was one; otherwise it is ErrConflict. It returns the
// entry's own number. key is the host's name as one subject token.
func (s *Store) PutSeat(ctx context.Context, tenant, key string, body []byte, base uint64) (uint64, error) {
	number, err := s.seats.Update(ctx, tenant+"."+key, body, base)
	if err != nil {
		return 0, fmt.Errorf("cannot give the seat of host %s of tenant %s: %w", key, tenant, translate(err))
	}
	return number, nil
}

// WatchSeats calls see with the seat of each of a tenant's hosts, now and
// after each change; with an empty key at the end of what was there when the
// watch began, with no body when the entry is gone. It returns when ctx ends or
// the store is gone.
func (s *Store) WatchSeats(ctx context.Context, tenant string, see func(key string, body []byte, number uint64)) error {
	err := watch(ctx, s.seats, tenant+".*", func(entry jetstream.KeyValueEntry) bool {
		switch {
		case entry == nil:
			see("", nil, 0)
		case entry.Operation() != jetstream.KeyValuePut:
			see(entry.Key()[len(tenant)+1:], nil, entry.Revision())
		default:
			see(entry.Key()[len(tenant)+1:], entry.Value(), entry.Revision())
		}
		return true
	})
	return fmt.Errorf("cannot watch the seats of tenant %s: %w", tenant, err)
}
