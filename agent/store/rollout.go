package store

import (
	"context"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Rollout returns the policy of a tenant's runs and its revision, or
// ErrNotFound.
func (s *Store) Rollout(ctx context.Context, tenant string) (v1.Rollout, Revision, error) {
	return s.rollouts.get(ctx, key{tenant: tenant})
}

// PutRollout writes it as PutConfig does a configuration.
func (s *Store) PutRollout(ctx context.Context, tenant string, rollout v1.Rollout, base Revision) (Revision, error) {
	return s.rollouts.put(ctx, key{tenant: tenant}, rollout, base)
}

// DeleteRollout removes it as DeleteConfig does a configuration.
func (s *Store) DeleteRollout(ctx context.Context, tenant string, base Revision) (Revision, error) {
	return s.rollouts.remove(ctx, key{tenant: tenant}, base)
}

// WatchRollout calls see with the policy of a tenant's runs as WatchConfig does
// with a configuration.
func (s *Store) WatchRollout(ctx context.Context, tenant string, see func(Seen[v1.Rollout])) error {
	return s.rollouts.watch(ctx, tenant, see)
}
