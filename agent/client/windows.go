package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Windows gets the spans in which a run may be under way that overlap the time
// between two instants, in their order. The zero from is now and the zero to as
// far ahead as the server looks; a count of 0 is the server's default.
func (c *Client) Windows(ctx context.Context, tenant string, from, to time.Time, count int) ([]v1.Window, error) {
	path, err := tenantPath("state", tenant, "/windows")
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	if !from.IsZero() {
		query.Set("from", from.Format(time.RFC3339Nano))
	}
	if !to.IsZero() {
		query.Set("to", to.Format(time.RFC3339Nano))
	}
	if count != 0 {
		query.Set("count", strconv.Itoa(count))
	}
	var windows []v1.Window
	if err := c.get(ctx, path, query, &windows); err != nil {
		return nil, err
	}
	return windows, nil
}

// WindowsICS gets the windows of the next twelve months as an iCalendar text.
func (c *Client) WindowsICS(ctx context.Context, tenant string) ([]byte, error) {
	path, err := tenantPath("state", tenant, "/windows.ics")
	if err != nil {
		return nil, err
	}
	a, err := c.do(ctx, request{method: http.MethodGet, path: path, accept: "text/calendar"})
	if err != nil {
		return nil, err
	}
	return a.body, nil
}
