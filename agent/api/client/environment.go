package client

import (
	"context"
	"fmt"
	"net/http"

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
func (c *Client) Environments(ctx context.Context, tenant string) ([]v1.EnvironmentInfo, error) {
	return listed[v1.EnvironmentInfo](ctx, c, tenant, "/environments")
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
