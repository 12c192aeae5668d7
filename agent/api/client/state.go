package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
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
	return c.hosts(ctx, tenant, atSite(site))
}

// HostsPart gets those of the tenant's hosts that a filter chooses, by name, and if there are
// none, why its selector chooses none. Only our own agent knows filters; another server returns
// all hosts.
func (c *Client) HostsPart(ctx context.Context, tenant string, filter v1.HostFilter) ([]v1.Host, []v1.IntentWarning, error) {
	var hosts []v1.Host
	why, err := c.selected(ctx, tenant, "/hosts", filter.Query(), &hosts)
	return hosts, why, err
}

// HostNames gets the names of the hosts that a selector chooses, and if there are none, why.
func (c *Client) HostNames(ctx context.Context, tenant string, selector v1.Selector) ([]string, []v1.IntentWarning, error) {
	query := url.Values{"keys": {"true"}}
	selector.AddTo(query)
	var names []string
	why, err := c.selected(ctx, tenant, "/hosts", query, &names)
	return names, why, err
}

// LabelledHosts gets the role and the labels of each host, and nothing else of it.
func (c *Client) LabelledHosts(ctx context.Context, tenant string) ([]v1.Host, error) {
	return c.hosts(ctx, tenant, url.Values{"fields": {"role,labels"}})
}

// selected reads a list that a selector restricts, and what the server says of a selector that
// chooses no host.
func (c *Client) selected(ctx context.Context, tenant, below string, query url.Values, to any) ([]v1.IntentWarning, error) {
	path, err := tenantPath("state", tenant, below)
	if err != nil {
		return nil, err
	}
	q := request{method: http.MethodGet, path: path, query: query}
	a, err := c.do(ctx, q)
	if err == nil {
		err = c.decode(q, a, to)
	}
	return v1.ParseWarnings(v1.SelectorObject, a.header.Values(v1.WarningHeader)), err
}

// hostsInPart bounds what client and server hold of the hosts at once.
const hostsInPart = 500

// HostQuery says where hosts are read, and what of them.
type HostQuery struct {
	// Site may be empty.
	Site string
	// Inventories adds what the machine of each host consists of, which only our own agent
	// knows.
	Inventories bool
	// Selector chooses the hosts where the server can: another server returns all.
	Selector v1.Selector
}

// HostParts reads the tenant's hosts part by part, in the order of their names, so that
// neither side has all of them in memory. A host that appears meanwhile is in a later part or
// in none. A server without parts answers with all hosts, which are one part. An error is the
// last that comes.
func (c *Client) HostParts(ctx context.Context, tenant string, q HostQuery) iter.Seq2[[]v1.Host, error] {
	return func(yield func([]v1.Host, error) bool) {
		query := atSite(q.Site)
		if query == nil {
			query = url.Values{}
		}
		if q.Inventories {
			query.Set("inventory", "true")
		}
		whole := maps.Clone(query)
		q.Selector.AddTo(query)
		query.Set("limit", strconv.Itoa(hostsInPart))
		part, next, err := c.hostPart(ctx, tenant, query)
		if HasStatus(err, http.StatusBadRequest) { // It may refuse a parameter that it does not know.
			part, next, err = c.hostPart(ctx, tenant, whole)
		}
		for ; err == nil; part, next, err = c.hostPart(ctx, tenant, next) {
			if !yield(part, nil) || next == nil {
				return
			}
		}
		yield(nil, err)
	}
}

// hostPart gets a part of the hosts, and the query of the next part; nil if it is the last.
func (c *Client) hostPart(ctx context.Context, tenant string, query url.Values) (part []v1.Host, next url.Values, err error) {
	path, err := tenantPath("state", tenant, "/hosts")
	if err != nil {
		return nil, nil, err
	}
	q := request{method: http.MethodGet, path: path, query: query}
	a, err := c.do(ctx, q)
	if err == nil {
		err = c.decode(q, a, &part)
	}
	if err != nil {
		return nil, nil, err
	}
	link := nextLink(a.header)
	if link == nil {
		return part, nil, nil
	}
	next = link.Query()
	if link.Path != path || next.Get("after") <= query.Get("after") {
		return nil, nil, c.callError(q, errNoProgress, fmt.Sprintf("%s: %s", statusText(a.status), errNoProgress))
	}
	return part, next, nil
}

// errNoProgress means that the parts of a list would not end.
var errNoProgress = errors.New("its header Link does not lead to the next part of the list")

// nextLink returns where the header Link of an answer leads to as the next part (RFC 8288);
// nil if there is none.
func nextLink(header http.Header) *url.URL {
	for _, value := range header.Values("Link") {
		target, parameters, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(value), "<"), ">")
		if !found || !strings.Contains(strings.ReplaceAll(parameters, `"`, ""), "rel=next") {
			continue
		}
		if link, err := url.Parse(target); err == nil {
			return link
		}
	}
	return nil
}

func (c *Client) hosts(ctx context.Context, tenant string, query url.Values) ([]v1.Host, error) {
	path, err := tenantPath("state", tenant, "/hosts")
	if err != nil {
		return nil, err
	}
	var hosts []v1.Host
	if err := c.get(ctx, path, query, &hosts); err != nil {
		return nil, err
	}
	return hosts, nil
}

// Host gets one of the tenant's hosts with its last reports. A host that is not
// known is an *Error of status 404.
func (c *Client) Host(ctx context.Context, tenant, host string) (v1.Host, error) {
	path, err := hostPath(tenant, host)
	if err != nil {
		return v1.Host{}, err
	}
	var h v1.Host
	if err := c.get(ctx, path, nil, &h); err != nil {
		return v1.Host{}, err
	}
	return h, nil
}

// Offer gets what an upgrade of a host would change if it began now. A host that has told no
// offer is an *Error of status 404.
func (c *Client) Offer(ctx context.Context, tenant, host string) (v1.HostPlan, error) {
	path, err := hostPath(tenant, host)
	if err != nil {
		return v1.HostPlan{}, err
	}
	var offer v1.HostPlan
	if err := c.get(ctx, path+"/offer", nil, &offer); err != nil {
		return v1.HostPlan{}, err
	}
	return offer, nil
}

// hostPath is the path of a host.
func hostPath(tenant, host string) (string, error) {
	if strings.Trim(host, ".") == "" || strings.Contains(host, "/") {
		return "", fmt.Errorf("host %q is not the name of a host", host)
	}
	return tenantPath("state", tenant, "/hosts/"+url.PathEscape(host))
}

// DeleteHost has the tenant's controller forget a host that is gone for good,
// so that no run waits for it; the reason, which may be empty, is kept with a run that
// did. A host that is online is an *Error of status
// 412, one that is not known an *Error of status 404.
func (c *Client) DeleteHost(ctx context.Context, tenant, host, reason string) error {
	path, err := hostPath(tenant, host)
	if err != nil {
		return err
	}
	query := url.Values{}
	if reason != "" {
		query.Set("reason", reason)
	}
	a, err := c.do(ctx, request{method: http.MethodDelete, path: path, query: query})
	if a.retried && Missing(err) {
		return nil // By our own DELETE, whose answer was lost.
	}
	return err
}

// atSite has the request forwarded to a site.
func atSite(site string) url.Values {
	if site == "" {
		return nil
	}
	return url.Values{"site": {site}}
}

// Windows gets the spans in which a run may be under way that overlap the time
// between two instants, in their order. The zero from is now and the zero to as
// far ahead as the server looks; a count of 0 is the server's default.
func (c *Client) Windows(ctx context.Context, tenant string, from, to time.Time, count int) ([]v1.Window, error) {
	return c.windows(ctx, tenant, url.Values{}, from, to, count)
}

// EnvironmentWindows is Windows of an environment or, without a name, of the tenant and of all
// environments that have windows of their own.
func (c *Client) EnvironmentWindows(ctx context.Context, tenant, environment string, from, to time.Time, count int) ([]v1.Window, error) {
	query := url.Values{"environments": {"true"}}
	if environment != "" {
		query = url.Values{"environment": {environment}}
	}
	return c.windows(ctx, tenant, query, from, to, count)
}

func (c *Client) windows(ctx context.Context, tenant string, query url.Values, from, to time.Time, count int) ([]v1.Window, error) {
	path, err := tenantPath("state", tenant, "/windows")
	if err != nil {
		return nil, err
	}
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

// SkipWindow skips a window, and returns it.
func (c *Client) SkipWindow(ctx context.Context, tenant string, skip v1.SkipWindow) (skipped v1.SkippedWindow, err error) {
	return skipped, c.post(ctx, tenant, "/skip-window", skip, true, &skipped)
}

// UnskipWindow lets a skipped window open its run: the one that opens at a time, or the next one that
// is skipped if the time is zero.
func (c *Client) UnskipWindow(ctx context.Context, tenant, environment string, start time.Time) error {
	path, err := tenantPath("state", tenant, "/skip-window")
	if err != nil {
		return err
	}
	query := url.Values{}
	if environment != "" {
		query.Set("environment", environment)
	}
	if !start.IsZero() {
		query.Set("window-start", start.Format(time.RFC3339))
	}
	_, err = c.do(ctx, request{method: http.MethodDelete, path: path, query: query})
	return err
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
