package client

import (
	"context"
	"net/url"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// State gets what is; site may be empty.
func (c *Client) State(ctx context.Context, tenant, site string) (v1.State, error) {
	path, err := tenantPath("state", tenant, "")
	if err != nil {
		return v1.State{}, err
	}
	var s v1.State
	if err := c.get(ctx, path, atSite(site), &s); err != nil {
		return v1.State{}, err
	}
	return s, nil
}

// Hosts gets the tenant's hosts; site may be empty.
func (c *Client) Hosts(ctx context.Context, tenant, site string) ([]v1.Host, error) {
	path, err := tenantPath("state", tenant, "/hosts")
	if err != nil {
		return nil, err
	}
	var hosts []v1.Host
	if err := c.get(ctx, path, atSite(site), &hosts); err != nil {
		return nil, err
	}
	return hosts, nil
}

// atSite has the request forwarded to a site (avassa.md 2).
func atSite(site string) url.Values {
	if site == "" {
		return nil
	}
	return url.Values{"site": {site}}
}
