package client

import (
	"context"
	"net/http"
	"strconv"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Start starts a run by hand and returns it. A run that is already under way
// is an *Error of status 412 that names it in its error-info. The request is
// sent again only when it surely started nothing.
func (c *Client) Start(ctx context.Context, tenant string, start v1.Start) (v1.Run, error) {
	path, err := tenantPath("state", tenant, "/start")
	if err != nil {
		return v1.Run{}, err
	}
	q := request{method: http.MethodPost, path: path, body: start}
	a, err := c.do(ctx, q)
	if err != nil {
		return v1.Run{}, err
	}
	var run v1.Run
	if err := c.decode(q, a, &run); err != nil {
		return v1.Run{}, err
	}
	return run, nil
}

// Run gets one run.
func (c *Client) Run(ctx context.Context, tenant string, id uint64) (v1.Run, error) {
	path, err := tenantPath("state", tenant, "/runs/"+strconv.FormatUint(id, 10))
	if err != nil {
		return v1.Run{}, err
	}
	var run v1.Run
	if err := c.get(ctx, path, nil, &run); err != nil {
		return v1.Run{}, err
	}
	return run, nil
}

// Runs gets the runs that are kept, newest first; they may come without their
// hosts.
func (c *Client) Runs(ctx context.Context, tenant string) ([]v1.Run, error) {
	path, err := tenantPath("state", tenant, "/runs")
	if err != nil {
		return nil, err
	}
	var runs []v1.Run
	if err := c.get(ctx, path, nil, &runs); err != nil {
		return nil, err
	}
	return runs, nil
}
