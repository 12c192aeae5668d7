package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/inventory"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// inventoriesBucket has what the machine of each host consists of, by tenant and host.
const inventoriesBucket = "osu-inventories"

// PutInventory keeps what the machine of a host consists of, in place of an earlier
// inventory; key is the host's name as one subject token.
func (s *Store) PutInventory(ctx context.Context, tenant, key string, body []byte) error {
	if _, err := s.inventories.Put(ctx, tenant+"."+key, body); err != nil {
		return fmt.Errorf("cannot keep the inventory of host %s: %w", key, err)
	}
	return nil
}

// Inventory returns the inventory of a host as it was told, and when it was kept; nil when
// there is none. What is damaged is returned as it is: the host tells another one.
func (s *Store) Inventory(ctx context.Context, tenant, key string) (body []byte, at time.Time, err error) {
	entry, err := s.inventories.Get(ctx, tenant+"."+key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, time.Time{}, nil
	case err != nil:
		return nil, time.Time{}, fmt.Errorf("cannot read the inventory of host %s: %w", key, err)
	}
	return entry.Value(), entry.Created(), nil
}

// Inventories returns the inventories of a tenant's hosts, by the host's name as one
// subject token; key is one of those, or AllHosts. One that cannot be read is left out: its
// host tells another.
func (s *Store) Inventories(ctx context.Context, tenant, key string) (map[string]v1.HostInventory, error) {
	found := map[string]v1.HostInventory{}
	err := watch(ctx, s.inventories, tenant+"."+key, func(entry jetstream.KeyValueEntry) bool {
		if entry == nil { // The end of the initial values.
			return false
		}
		if read, err := inventory.Decode(entry.Value()); err == nil {
			found[strings.TrimPrefix(entry.Key(), tenant+".")] = v1.HostInventory{At: entry.Created(), Inventory: read}
		}
		return true
	}, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("cannot read the inventories of tenant %s: %w", tenant, err)
	}
	return found, nil
}

// AllHosts stands for the names of all hosts.
const AllHosts = "*"
