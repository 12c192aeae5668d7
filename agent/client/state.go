package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

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

// DeleteHost has the tenant's controller forget a host that is gone for good,
// so that no run waits for it. A host that is online is an *Error of status
// 412, one that is not known an *Error of status 404.
func (c *Client) DeleteHost(ctx context.Context, tenant, host string) error {
	if strings.Trim(host, ".") == "" || strings.Contains(host, "/") {
		return fmt.Errorf("host %q is not the name of a host", host)
	}
	path, err := tenantPath("state", tenant, "/hosts/"+host)
	if err != nil {
		return err
	}
	a, err := c.do(ctx, request{method: http.MethodDelete, path: path})
	if a.retried && Missing(err) {
		return nil // By our own DELETE, whose answer was lost.
	}
	return err
}

// atSite has the request forwarded to a site (avassa.md 2).
func atSite(site string) url.Values {
	if site == "" {
		return nil
	}
	return url.Values{"site": {site}}
}
