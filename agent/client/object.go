package client

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
)

// object is a kind of object below a tenant's configuration.
type object[T any] struct {
	// rest is the end of its path, after os-upgrade.
	rest string
	// same reports whether two of them mean the same.
	same func(a, b T) bool
}

func (o object[T]) get(ctx context.Context, c *Client, tenant string) (value T, etag string, err error) {
	var none T
	path, err := tenantPath("config", tenant, o.rest)
	if err != nil {
		return none, "", err
	}
	q := request{method: http.MethodGet, path: path}
	a, err := c.do(ctx, q)
	if err != nil {
		return none, "", err
	}
	if len(bytes.TrimSpace(a.body)) > 0 {
		if err := c.decode(q, a, &value); err != nil {
			return none, "", err
		}
	}
	return value, a.header.Get("ETag"), nil
}

func (o object[T]) put(ctx context.Context, c *Client, tenant string, value T, when Precondition) (etag string, err error) {
	path, err := tenantPath("config", tenant, o.rest)
	if err != nil {
		return "", err
	}
	a, err := c.do(ctx, request{method: http.MethodPut, path: path, body: value, when: when})
	if err == nil {
		return a.header.Get("ETag"), nil
	}
	// Our own write, whose answer was lost, fails our precondition now.
	if a.retried && HasStatus(err, http.StatusPreconditionFailed) {
		if there, etag, lookErr := o.get(ctx, c, tenant); lookErr == nil && o.same(there, value) {
			return etag, nil
		}
	}
	return "", err
}

func (o object[T]) validate(ctx context.Context, c *Client, tenant string, value T) error {
	path, err := tenantPath("config", tenant, o.rest)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, request{
		method: http.MethodPut, path: path, query: url.Values{"validate": {"true"}}, body: value,
	})
	return err
}

func (o object[T]) remove(ctx context.Context, c *Client, tenant string, when Precondition) error {
	path, err := tenantPath("config", tenant, o.rest)
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
		if _, _, lookErr := o.get(ctx, c, tenant); Missing(lookErr) {
			return nil
		}
	}
	return err
}
