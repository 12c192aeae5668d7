package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Tenants are the tenants of the site as objects.
var Tenants = Object[v1.Tenant]{at: tenantObjectPath, same: v1.SameTenant, canonical: v1.Tenant.Canonical}

func tenantObjectPath(name string) (string, error) {
	if !names.Valid(name) {
		return "", fmt.Errorf("tenant %q is not a name; %s", name, names.Form)
	}
	return "/v1/config/tenants/" + name, nil
}

// TenantObjects returns the tenants that the site serves, by name.
func (c *Client) TenantObjects(ctx context.Context) (all []v1.Tenant, err error) {
	return all, c.get(ctx, "/v1/config/tenants", nil, &all)
}

// Tenants returns the tenants of the site with what it knows of them, by name, also those
// that were removed. It needs a token of all tenants, as each method here does.
func (c *Client) Tenants(ctx context.Context) (all []v1.TenantState, err error) {
	return all, c.get(ctx, "/v1/state/tenants", nil, &all)
}

// Statuses returns the status of all tenants whose state the token may read, by name.
func (c *Client) Statuses(ctx context.Context) (all []v1.TenantStatus, err error) {
	return all, c.get(ctx, "/v1/state/status", nil, &all)
}

// AddTenant makes a tenant. One that was removed is made again with restore alone, and has
// all that it had.
func (c *Client) AddTenant(ctx context.Context, t v1.Tenant, restore bool) error {
	query := url.Values{}
	if restore {
		query.Set("restore", "true")
	}
	_, err := c.do(ctx, request{method: http.MethodPost, path: "/v1/config/tenants", query: query, body: t})
	return err
}

// DeleteTenant removes a tenant; with force also one that has hosts or a run under way. The
// site keeps its log.
func (c *Client) DeleteTenant(ctx context.Context, name string, force bool) error {
	path, err := tenantObjectPath(name)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, request{method: http.MethodDelete, path: path, query: forced(force)})
	return err
}

func forced(force bool) url.Values {
	if force {
		return url.Values{"force": {"true"}}
	}
	return nil
}
