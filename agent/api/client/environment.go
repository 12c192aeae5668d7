package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// EnvironmentNamed are the tenants' environments of a name, as CalendarNamed are their calendars.
func EnvironmentNamed(name string) Object[v1.Environment] {
	o := Object[v1.Environment]{noun: v1.EnvironmentObject(name), rest: "/environments/" + name, same: v1.SameEnvironment, canonical: v1.Environment.Canonical}
	if wrong := v1.EnvironmentName(name); wrong != "" {
		o.invalid = fmt.Errorf("environment %q %s", name, wrong)
	}
	return o
}

// Environments lists a tenant's environments, by name.
func (c *Client) Environments(ctx context.Context, tenant string) (list []v1.EnvironmentInfo, err error) {
	path, err := tenantPath("config", tenant, "/environments")
	if err != nil {
		return nil, err
	}
	return list, c.get(ctx, path, nil, &list)
}

// StoredEnvironments gets all environments of a tenant at once, by name, as StoredCalendars does.
func (c *Client) StoredEnvironments(ctx context.Context, tenant string) (map[string]Stored[v1.Environment], error) {
	return storedList[v1.Environment](ctx, c, tenant, "/environments", "environment")
}

// MoveHost assigns a host to an environment; an empty name undoes that, so the matches decide again.
func (c *Client) MoveHost(ctx context.Context, tenant, host, environment string) (moved v1.HostEnvironment, err error) {
	path, err := hostPath(tenant, host)
	if err != nil {
		return moved, err
	}
	q := request{method: http.MethodPut, path: path + "/environment", body: v1.Move{Environment: environment}}
	a, err := c.do(ctx, q)
	if err != nil {
		return moved, err
	}
	return moved, c.decode(q, a, &moved)
}

// storedList gets all objects of a kind of a tenant at once, by name, each as Get of the object
// does. member has the content of each in the list. A server that leaves out an ETag or a content is
// an error.
func storedList[T any](ctx context.Context, c *Client, tenant, rest, member string) (map[string]Stored[T], error) {
	path, err := tenantPath("config", tenant, rest)
	if err != nil {
		return nil, err
	}
	var list []map[string]json.RawMessage
	if err := c.get(ctx, path, url.Values{"content": {"true"}}, &list); err != nil {
		return nil, err
	}
	all := map[string]Stored[T]{}
	for _, one := range list {
		var name, etag string
		for key, into := range map[string]*string{"name": &name, "etag": &etag} {
			if text := one[key]; text != nil {
				if err := json.Unmarshal(text, into); err != nil {
					return nil, fmt.Errorf("GET %s: the %s of an entry is not a text: %w", path, key, err)
				}
			}
		}
		if etag == "" || len(one[member]) == 0 {
			return nil, fmt.Errorf("GET %s: the entry of %s %q has no ETag or no content", path, member, name)
		}
		if all[name], err = NewStored[T](etag, one[member]); err != nil {
			return nil, fmt.Errorf("GET %s: %s %q: %w", path, member, name, err)
		}
	}
	return all, nil
}
