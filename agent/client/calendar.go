package client

import (
	"context"
	"fmt"
	"net/url"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

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
