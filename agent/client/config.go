package client

import (
	"context"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// configs are the tenants' os-upgrade configurations.
var configs = object[v1.OSUpgrade]{same: same}

// Config gets a tenant's os-upgrade configuration and its ETag (empty when the
// server sends none). An absent configuration is an *Error of status 404, see
// Missing; on a server that answers it with an empty body it is the zero one.
func (c *Client) Config(ctx context.Context, tenant string) (v1.OSUpgrade, string, error) {
	return configs.get(ctx, c, tenant)
}

// PutConfig creates or replaces it, and returns the new ETag (empty when the
// server sends none). A precondition that does not hold is an *Error of status
// 412.
func (c *Client) PutConfig(ctx context.Context, tenant string, config v1.OSUpgrade, when Precondition) (etag string, err error) {
	return configs.put(ctx, c, tenant, config, when)
}

// ValidateConfig asks the server whether PutConfig would be accepted (AV-8).
func (c *Client) ValidateConfig(ctx context.Context, tenant string, config v1.OSUpgrade) error {
	return configs.validate(ctx, c, tenant, config)
}

// DeleteConfig removes it. A configuration that is not there is no error, see
// Missing; a tenant that is not there is one.
func (c *Client) DeleteConfig(ctx context.Context, tenant string, when Precondition) error {
	return configs.remove(ctx, c, tenant, when)
}
