package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Start starts a run by hand and returns it. A run that is already under way
// is an *Error of status 412 that names it in its error-info. A request without
// an id is sent again only when it surely started nothing.
//
// A run that asks something before it prepares any host is returned once that has come out.
func (c *Client) Start(ctx context.Context, tenant string, start v1.Start) (v1.Run, error) {
	run, err := c.operate(ctx, tenant, "/start", start, start.RequestID != "")
	for err == nil && run.Phase == opening {
		if err = wait.Sleep(ctx, c.pace.waitMin); err == nil {
			run, err = c.Run(ctx, tenant, run.ID)
		}
	}
	return run, err
}

// opening is the phase of a run that asks what has to pass before it prepares any host.
const opening = "open"

// Health asks what a run would ask before it prepares any host, and returns how all of it came out.
func (c *Client) Health(ctx context.Context, tenant string, ask v1.AskHealth) (v1.HealthReport, error) {
	var report v1.HealthReport
	if err := c.post(ctx, tenant, "/health", ask, true, &report); err != nil {
		return v1.HealthReport{}, err
	}
	return c.CompleteHealth(ctx, tenant, report)
}

// CompleteHealth returns a report once all of it has come out. The server answers each request
// after a while in any case.
func (c *Client) CompleteHealth(ctx context.Context, tenant string, report v1.HealthReport) (v1.HealthReport, error) {
	path, err := tenantPath("state", tenant, "/health/"+strconv.Itoa(report.ID))
	for err == nil && !report.Complete() {
		var next v1.HealthReport
		if err = c.get(ctx, path, nil, &next); err == nil {
			report = next
		}
	}
	return report, err
}

// Refresh has hosts look for what an upgrade would change by what there is to install now.
func (c *Client) Refresh(ctx context.Context, tenant string, refresh v1.Refresh) (v1.Refreshed, error) {
	var refreshed v1.Refreshed
	err := c.post(ctx, tenant, "/refresh", refresh, true, &refreshed)
	return refreshed, err
}

// Preflight returns what a start would do, and starts nothing.
func (c *Client) Preflight(ctx context.Context, tenant string, start v1.Start) (v1.Preflight, error) {
	path, err := tenantPath("state", tenant, "/start")
	if err != nil {
		return v1.Preflight{}, err
	}
	q := request{method: http.MethodPost, path: path, query: url.Values{"validate": {"true"}}, body: start, repeatable: true}
	a, err := c.do(ctx, q)
	if err != nil {
		return v1.Preflight{}, err
	}
	var preflight v1.Preflight
	if err := c.decode(q, a, &preflight); err != nil {
		return v1.Preflight{}, err
	}
	return preflight, nil
}

// Pause holds up the run under way. When there is none, this and the others
// below are an *Error of status 412. They are sent again only when they surely
// had no effect.
func (c *Client) Pause(ctx context.Context, tenant string, ask v1.Ask) (v1.Run, error) {
	return c.operate(ctx, tenant, "/pause", ask, false)
}

// Resume lets the run go on that is paused.
func (c *Client) Resume(ctx context.Context, tenant string, ask v1.Ask) (v1.Run, error) {
	return c.operate(ctx, tenant, "/resume", ask, false)
}

// Abort ends the run under way.
func (c *Client) Abort(ctx context.Context, tenant string, ask v1.Ask) (v1.Run, error) {
	return c.operate(ctx, tenant, "/abort", ask, false)
}

// AbortAll ends the runs under way of all environments and returns them. When some could not be
// aborted, the *Error has an error for each of their environments.
func (c *Client) AbortAll(ctx context.Context, tenant string, ask v1.Ask) ([]v1.Run, error) {
	ask.All = true
	var runs []v1.Run
	err := c.post(ctx, tenant, "/abort", ask, true, &runs)
	return runs, err
}

// Approve lets the stage begin that ask names.
func (c *Client) Approve(ctx context.Context, tenant string, ask v1.Ask) (v1.Run, error) {
	return c.operate(ctx, tenant, "/approve", ask, false)
}

// Release frees, by force, the slot of the host that ask names.
func (c *Client) Release(ctx context.Context, tenant string, ask v1.Ask) (v1.Run, error) {
	return c.operate(ctx, tenant, "/release", ask, false)
}

// operate posts a request about runs and returns the run that it is about.
func (c *Client) operate(ctx context.Context, tenant, operation string, body any, repeatable bool) (v1.Run, error) {
	var run v1.Run
	if err := c.post(ctx, tenant, operation, body, repeatable, &run); err != nil {
		return v1.Run{}, err
	}
	return run, nil
}

// post posts a request about runs and reads the answer.
func (c *Client) post(ctx context.Context, tenant, operation string, body any, repeatable bool, to any) error {
	path, err := tenantPath("state", tenant, operation)
	if err != nil {
		return err
	}
	q := request{method: http.MethodPost, path: path, body: body, repeatable: repeatable}
	a, err := c.do(ctx, q)
	if err != nil {
		return err
	}
	return c.decode(q, a, to)
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

// Output gets what the actions of a host have printed in a run.
func (c *Client) Output(ctx context.Context, tenant string, id uint64, host string) ([]v1.ActionOutput, error) {
	if !names.ValidHost(host) {
		return nil, fmt.Errorf("host %q is not the name of a host", host)
	}
	path, err := tenantPath("state", tenant, "/runs/"+strconv.FormatUint(id, 10)+"/hosts/"+host+"/output")
	if err != nil {
		return nil, err
	}
	var outputs []v1.ActionOutput
	if err := c.get(ctx, path, nil, &outputs); err != nil {
		return nil, err
	}
	return outputs, nil
}

// Installed returns what a run has installed, as a release.
func (c *Client) Installed(ctx context.Context, tenant string, id uint64) (v1.Installed, error) {
	path, err := tenantPath("state", tenant, "/runs/"+strconv.FormatUint(id, 10)+"/installed")
	if err != nil {
		return v1.Installed{}, err
	}
	var found v1.Installed
	err = c.get(ctx, path, nil, &found)
	return found, err
}

// Plan gets what a run changes on a host.
func (c *Client) Plan(ctx context.Context, tenant string, id uint64, host string) (v1.HostPlan, error) {
	if !names.ValidHost(host) {
		return v1.HostPlan{}, fmt.Errorf("host %q is not the name of a host", host)
	}
	path, err := tenantPath("state", tenant, "/runs/"+strconv.FormatUint(id, 10)+"/hosts/"+host+"/plan")
	if err != nil {
		return v1.HostPlan{}, err
	}
	var plan v1.HostPlan
	if err := c.get(ctx, path, nil, &plan); err != nil {
		return v1.HostPlan{}, err
	}
	return plan, nil
}

// Runs gets those of the runs that are kept which a filter chooses, newest
// first; they may come without their hosts.
func (c *Client) Runs(ctx context.Context, tenant string, filter v1.RunFilter) ([]v1.Run, error) {
	runs, _, err := c.RunsOf(ctx, tenant, filter)
	return runs, err
}

// RunsOf is Runs, and if there are none, tells why the selector of the filter chooses no host.
func (c *Client) RunsOf(ctx context.Context, tenant string, filter v1.RunFilter) (runs []v1.Run, why []v1.IntentWarning, err error) {
	why, err = c.selected(ctx, tenant, "/runs", filterQuery(filter), &runs)
	return runs, why, err
}

// filterQuery writes a filter without what it leaves open.
func filterQuery(f v1.RunFilter) url.Values {
	query := url.Values{}
	f.AddTo(query)
	add := func(name, value string, given bool) {
		if given {
			query.Set(name, value)
		}
	}
	add("result", f.Result, f.Result != "")
	add("since", f.Since.Format(time.RFC3339Nano), !f.Since.IsZero())
	add("until", f.Until.Format(time.RFC3339Nano), !f.Until.IsZero())
	add("limit", strconv.Itoa(f.Limit), f.Limit != 0)
	return query
}
