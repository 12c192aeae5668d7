package client

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Config gets a tenant's os-upgrade configuration and its ETag (empty when the
// server sends none). An absent configuration is an *Error of status 404, see
// Missing; on a server that answers it with an empty body it is the zero one.
func (c *Client) Config(ctx context.Context, tenant string) (v1.OSUpgrade, string, error) {
	path, err := tenantPath("config", tenant, "")
	if err != nil {
		return v1.OSUpgrade{}, "", err
	}
	q := request{method: http.MethodGet, path: path}
	a, err := c.do(ctx, q)
	if err != nil {
		return v1.OSUpgrade{}, "", err
	}
	var config v1.OSUpgrade
	if len(bytes.TrimSpace(a.body)) > 0 {
		if err := c.decode(q, a, &config); err != nil {
			return v1.OSUpgrade{}, "", err
		}
	}
	return config, a.header.Get("ETag"), nil
}

// PutConfig creates or replaces it, and returns the new ETag (empty when the
// server sends none). A precondition that does not hold is an *Error of status
// 412.
func (c *Client) PutConfig(ctx context.Context, tenant string, config v1.OSUpgrade, when Precondition) (etag string, err error) {
	path, err := tenantPath("config", tenant, "")
	if err != nil {
		return "", err
	}
	a, err := c.do(ctx, request{method: http.MethodPut, path: path, body: config, when: when})
	if err == nil {
		return a.header.Get("ETag"), nil
	}
	// Our own write, whose answer was lost, fails our precondition now.
	if a.retried && HasStatus(err, http.StatusPreconditionFailed) {
		if there, etag, lookErr := c.Config(ctx, tenant); lookErr == nil && same(there, config) {
			return etag, nil
		}
	}
	return "", err
}

// ValidateConfig asks the server whether PutConfig would be accepted (AV-8).
func (c *Client) ValidateConfig(ctx context.Context, tenant string, config v1.OSUpgrade) error {
	path, err := tenantPath("config", tenant, "")
	if err != nil {
		return err
	}
	_, err = c.do(ctx, request{
		method: http.MethodPut, path: path, query: url.Values{"validate": {"true"}}, body: config,
	})
	return err
}

// DeleteConfig removes it. A configuration that is not there is no error, see
// Missing; a tenant that is not there is one.
func (c *Client) DeleteConfig(ctx context.Context, tenant string, when Precondition) error {
	path, err := tenantPath("config", tenant, "")
	if err != nil {
		return err
	}
	_, err = c.do(ctx, request{method: http.MethodDelete, path: path, when: when})
	if Missing(err) {
		return nil
	}
	// If-Match cannot hold on what is gone (RFC 9110 13.1.1), be it by our own
	// DELETE whose answer was lost.
	if HasStatus(err, http.StatusPreconditionFailed) {
		if _, _, lookErr := c.Config(ctx, tenant); Missing(lookErr) {
			return nil
		}
	}
	return err
}
