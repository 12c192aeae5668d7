package client

import (
	"context"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// EnvironmentStatuses gets what each environment of a tenant is doing, by name.
func (c *Client) EnvironmentStatuses(ctx context.Context, tenant string) (all []v1.EnvironmentStatus, err error) {
	path, err := tenantPath("state", tenant, "/environments")
	if err != nil {
		return nil, err
	}
	return all, c.get(ctx, path, nil, &all)
}

// EnvironmentStatus gets what an environment of a tenant is doing. An absent one is an *Error of
// status 404, see Missing.
func (c *Client) EnvironmentStatus(ctx context.Context, tenant, name string) (status v1.EnvironmentStatus, err error) {
	if !names.Valid(name) {
		return status, fmt.Errorf("environment %q is not a name; %s", name, names.Form)
	}
	path, err := tenantPath("state", tenant, "/environments/"+name)
	if err != nil {
		return status, err
	}
	return status, c.get(ctx, path, nil, &status)
}
