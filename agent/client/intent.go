package client

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
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

// configs are the tenants' os-upgrade configurations.
var configs = object[v1.OSUpgrade]{same: v1.SameOSUpgrade}

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

// rollouts are the policies of the tenants' runs.
var rollouts = object[v1.Rollout]{rest: "/rollout", same: v1.SameRollout}

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

// calendarOf is a tenant's calendar of a name. A name that is none is refused
// here, as tenantPath does.
func calendarOf(name string) (object[v1.Calendar], error) {
	if !names.Valid(name) {
		return object[v1.Calendar]{}, fmt.Errorf("calendar %q is not a name; use at most %d of a-z, 0-9 and -, with no - at either end", name, names.MaxLength)
	}
	return object[v1.Calendar]{rest: "/calendars/" + name, same: v1.SameCalendar}, nil
}

// Calendars lists a tenant's calendars, by name.
func (c *Client) Calendars(ctx context.Context, tenant string) ([]v1.CalendarInfo, error) {
	path, err := tenantPath("config", tenant, "/calendars")
	if err != nil {
		return nil, err
	}
	var list []v1.CalendarInfo
	if err := c.get(ctx, path, nil, &list); err != nil {
		return nil, err
	}
	return list, nil
}

// CalendarContents gets all calendars of a tenant at once, by name.
func (c *Client) CalendarContents(ctx context.Context, tenant string) (map[string]v1.Calendar, error) {
	path, err := tenantPath("config", tenant, "/calendars")
	if err != nil {
		return nil, err
	}
	var list []v1.CalendarInfo
	if err := c.get(ctx, path, url.Values{"content": {"true"}}, &list); err != nil {
		return nil, err
	}
	contents := map[string]v1.Calendar{}
	for _, info := range list {
		if info.Calendar == nil {
			return nil, fmt.Errorf("GET %s told nothing of what is in calendar %q", path, info.Name)
		}
		contents[info.Name] = *info.Calendar
	}
	return contents, nil
}

// Calendar gets a tenant's calendar and its ETag. An absent one is an *Error of
// status 404, see Missing.
func (c *Client) Calendar(ctx context.Context, tenant, name string) (v1.Calendar, string, error) {
	o, err := calendarOf(name)
	if err != nil {
		return v1.Calendar{}, "", err
	}
	return o.get(ctx, c, tenant)
}

// PutCalendar creates or replaces it, and returns the new ETag. A precondition
// that does not hold is an *Error of status 412.
func (c *Client) PutCalendar(ctx context.Context, tenant, name string, calendar v1.Calendar, when Precondition) (etag string, err error) {
	o, err := calendarOf(name)
	if err != nil {
		return "", err
	}
	return o.put(ctx, c, tenant, calendar, when)
}

// ValidateCalendar asks the server whether PutCalendar would be accepted.
func (c *Client) ValidateCalendar(ctx context.Context, tenant, name string, calendar v1.Calendar) error {
	o, err := calendarOf(name)
	if err != nil {
		return err
	}
	return o.validate(ctx, c, tenant, calendar)
}

// DeleteCalendar removes it. One that is not there is no error; a tenant that
// is not there is one.
func (c *Client) DeleteCalendar(ctx context.Context, tenant, name string, when Precondition) error {
	o, err := calendarOf(name)
	if err != nil {
		return err
	}
	return o.remove(ctx, c, tenant, when)
}
