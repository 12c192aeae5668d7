package store

import (
	"context"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Config returns a tenant's configuration and its revision, or ErrNotFound.
func (s *Store) Config(ctx context.Context, tenant string) (v1.OSUpgrade, Revision, error) {
	return s.configs.get(ctx, key{tenant: tenant})
}

// PutConfig writes a tenant's configuration if the one there still has the
// revision base; the zero Revision means that there must be none. Otherwise it
// is ErrConflict.
func (s *Store) PutConfig(ctx context.Context, tenant string, config v1.OSUpgrade, base Revision) (Revision, error) {
	return s.configs.put(ctx, key{tenant: tenant}, config, base)
}

// DeleteConfig removes a tenant's configuration if it still has the revision
// base, or fails with ErrConflict. It returns the revision of the deletion.
func (s *Store) DeleteConfig(ctx context.Context, tenant string, base Revision) (Revision, error) {
	return s.configs.remove(ctx, key{tenant: tenant}, base)
}

// WatchConfig calls see with a tenant's configuration now and after each
// change. It returns when ctx ends or the store is gone.
func (s *Store) WatchConfig(ctx context.Context, tenant string, see func(Seen[v1.OSUpgrade])) error {
	return s.configs.watch(ctx, tenant, see)
}
