package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Config returns a tenant's configuration and its revision, or ErrNotFound.
func (s *Store) Config(ctx context.Context, tenant string) (v1.OSUpgrade, Revision, error) {
	entry, err := s.configs.Get(ctx, tenant)
	if err != nil {
		return v1.OSUpgrade{}, Revision{}, fmt.Errorf("cannot read the configuration of tenant %s: %w", tenant, translate(err))
	}
	config, err := decodeConfig(entry)
	return config, s.revision(entry.Revision()), err
}

func decodeConfig(entry jetstream.KeyValueEntry) (v1.OSUpgrade, error) {
	var config v1.OSUpgrade
	if err := json.Unmarshal(entry.Value(), &config); err != nil {
		return v1.OSUpgrade{}, fmt.Errorf("the stored configuration of tenant %s is damaged: %w", entry.Key(), err)
	}
	return config, nil
}

func (s *Store) revision(number uint64) Revision { return Revision{Bucket: s.made, Number: number} }

// PutConfig writes a tenant's configuration if the one there still has the
// revision base; the zero Revision means that there must be none. Otherwise it
// is ErrConflict.
func (s *Store) PutConfig(ctx context.Context, tenant string, config v1.OSUpgrade, base Revision) (Revision, error) {
	body, err := json.Marshal(config)
	if err != nil {
		return Revision{}, err
	}
	var number uint64
	switch {
	case base == (Revision{}):
		number, err = s.configs.Create(ctx, tenant, body)
	case base.Bucket != s.made:
		return Revision{}, fmt.Errorf("cannot write the configuration of tenant %s: %w", tenant, ErrConflict)
	default:
		number, err = s.configs.Update(ctx, tenant, body, base.Number)
	}
	if err != nil {
		return Revision{}, fmt.Errorf("cannot write the configuration of tenant %s: %w", tenant, translate(err))
	}
	return s.revision(number), nil
}

// DeleteConfig removes a tenant's configuration if it still has the revision
// base, or fails with ErrConflict.
func (s *Store) DeleteConfig(ctx context.Context, tenant string, base Revision) error {
	if base.Bucket != s.made {
		return fmt.Errorf("cannot delete the configuration of tenant %s: %w", tenant, ErrConflict)
	}
	if err := s.configs.Delete(ctx, tenant, jetstream.LastRevision(base.Number)); err != nil {
		return fmt.Errorf("cannot delete the configuration of tenant %s: %w", tenant, translate(err))
	}
	return nil
}

// Seen is a tenant's configuration as a watch sees it.
type Seen struct {
	// Config is nil when there is none.
	Config *v1.OSUpgrade
	// Number is the revision's; of the deletion when there is none, and 0 when
	// there never was one.
	Number uint64
	// Err is why the configuration that is there cannot be read.
	Err error
}

// WatchConfig calls see with a tenant's configuration now and after each
// change. It returns when ctx ends or the store is gone.
func (s *Store) WatchConfig(ctx context.Context, tenant string, see func(Seen)) error {
	watcher, err := s.configs.Watch(ctx, tenant)
	if err != nil {
		return fmt.Errorf("cannot watch the configuration of tenant %s: %w", tenant, err)
	}
	defer func() { _ = watcher.Stop() }()
	first := true
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case entry, open := <-watcher.Updates():
			switch {
			case !open:
				return errors.New("the watch on the configuration has ended")
			case entry != nil:
				see(seen(entry))
				first = false
			case first: // The end of the initial values, of which there were none.
				see(Seen{})
			}
		}
	}
}

func seen(entry jetstream.KeyValueEntry) Seen {
	if entry.Operation() != jetstream.KeyValuePut {
		return Seen{Number: entry.Revision()}
	}
	config, err := decodeConfig(entry)
	return Seen{Config: &config, Number: entry.Revision(), Err: err}
}
