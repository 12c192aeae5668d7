package client

import (
	"context"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// rollouts are the policies of the tenants' runs.
var rollouts = object[v1.Rollout]{rest: "/rollout", same: sameRollout}

// Rollout gets the policy of a tenant's runs and its ETag. An absent one is an
// *Error of status 404, see Missing.
func (c *Client) Rollout(ctx context.Context, tenant string) (v1.Rollout, string, error) {
	return rollouts.get(ctx, c, tenant)
}

// PutRollout creates or replaces it, and returns the new ETag. A precondition
// that does not hold is an *Error of status 412.
func (c *Client) PutRollout(ctx context.Context, tenant string, rollout v1.Rollout, when Precondition) (etag string, err error) {
	return rollouts.put(ctx, c, tenant, rollout, when)
}

// ValidateRollout asks the server whether PutRollout would be accepted.
func (c *Client) ValidateRollout(ctx context.Context, tenant string, rollout v1.Rollout) error {
	return rollouts.validate(ctx, c, tenant, rollout)
}

// DeleteRollout removes it; the tenant's runs then go by the defaults. One that
// is not there is no error; a tenant that is not there is one.
func (c *Client) DeleteRollout(ctx context.Context, tenant string, when Precondition) error {
	return rollouts.remove(ctx, c, tenant, when)
}
