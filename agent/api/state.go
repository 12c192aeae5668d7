package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// onSite refuses a request for another site.
func (s *server) onSite(c *call) error {
	if site := c.query.Get("site"); c.has("site") && site != s.Site {
		return problem(http.StatusNotFound, "site", site, "site %q does not exist; this is %q", site, s.Site)
	}
	return nil
}

// getState returns Avassa's state object.
func (s *server) getState(c *call) error {
	state, err := c.controller.State(c.Context())
	if err != nil {
		return err
	}
	if s.Certificates != nil {
		state.Certificates = s.Certificates(time.Now())
	}
	if err := s.addWaiting(c, &state); err != nil {
		return err
	}
	switch c.query.Get("content") {
	case "config":
		return s.sendFields(c, state.OSUpgrade)
	case "nonconfig":
		state.OSUpgrade = v1.OSUpgrade{}
	}
	return s.sendFields(c, state)
}

// getHosts lists the known hosts, on request each with its inventory, and in parts:
// the header Link leads to the next part if there is one (RFC 8288).
func (s *server) getHosts(c *call) error {
	filter, err := readHostFilter(c)
	if err != nil {
		return err
	}
	if c.has("count") && !c.has("keys") && filter.IsZero() {
		count, err := c.controller.CountHosts(c.Context())
		if err != nil {
			return err
		}
		s.send(c.w, c.Request, http.StatusOK, count)
		return nil
	}
	list := c.controller.Hosts
	if c.has("inventory") {
		list = c.controller.HostsWithInventories
	}
	ask := filter
	if filter.Limit > 0 {
		ask.Limit++ // The one behind the last tells that there are more.
	}
	hosts, err := list(c.Context(), ask)
	if err != nil {
		return err
	}
	if filter.Limit > 0 && len(hosts) > filter.Limit {
		hosts = hosts[:filter.Limit]
		sendNext(c, hosts[filter.Limit-1].Hostname)
	}
	if len(hosts) == 0 && filter.After == "" {
		s.warnOfSelector(c, filter.Selector)
	}
	return sendList(s, c, hosts, func(h v1.Host) string { return h.Hostname })
}

// warnOfSelector adds to an answer without hosts why a selector chooses none.
func (s *server) warnOfSelector(c *call, selector v1.Selector) {
	if selector.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(c.Context(), warnTimeout)
	defer cancel()
	found, err := c.controller.Unmatched(ctx, plan.Intent{Selector: &selector})
	if err != nil {
		s.Log.Warn("it is not known why a selector matches no host", "tenant", c.tenant, "error", err)
	}
	addWarnings(c, found)
}

// readSelector parses the selector in the query. An empty parameter is an error.
func readSelector(c *call) (v1.Selector, error) {
	for _, name := range []string{"host", "label", "role", "environment"} {
		if slices.Contains(c.query[name], "") {
			return v1.Selector{}, badRequest(name, "", "it is empty; give a value or omit it")
		}
	}
	selector, wrong := v1.ParseSelector(c.query["host"], c.query["label"], c.query["role"], c.query["environment"])
	if len(wrong) > 0 {
		return selector, wrong
	}
	return selector, nil
}

// readHostFilter parses the filter in the query. An empty parameter is an error.
func readHostFilter(c *call) (filter v1.HostFilter, err error) {
	if filter.Selector, err = readSelector(c); err != nil {
		return filter, err
	}
	if filter.After = c.query.Get("after"); c.has("after") && filter.After == "" {
		return filter, badRequest("after", "", "it is empty; give the name of a host or omit it")
	}
	if c.has("limit") {
		if filter.Limit, err = strconv.Atoi(c.query.Get("limit")); err != nil || filter.Limit < 1 {
			return filter, badRequest("limit", c.query.Get("limit"), "is not a number of hosts; use 1 to "+strconv.Itoa(v1.MaxHosts))
		}
	}
	if c.has("count") && filter.IsPart() {
		return filter, badRequest("count", "", "it counts all hosts; omit after and limit")
	}
	if wrong := filter.Validate(); len(wrong) > 0 {
		return filter, wrong
	}
	return filter, nil
}

// getHost shows one host with its last reports of versions.
func (s *server) getHost(c *call) error {
	name := c.PathValue("host")
	host, err := c.controller.Host(c.Context(), name)
	if errors.Is(err, run.ErrNoHost) {
		return unknownHost(name)
	} else if err != nil {
		return err
	}
	return s.sendFields(c, host)
}

// getOffer shows what an upgrade of a host would change if it began now.
func (s *server) getOffer(c *call) error {
	name := c.PathValue("host")
	offer, err := c.controller.Offer(c.Context(), name)
	switch {
	case errors.Is(err, run.ErrNoHost):
		return unknownHost(name)
	case errors.Is(err, run.ErrNoPlan):
		return problem(http.StatusNotFound, "host", name, "host %q has not told what an upgrade would change: its strategy makes no plan outside of a run, or its worker has not read it yet or is of an older version", name)
	case err != nil:
		return err
	}
	return s.sendFields(c, offer)
}

// postHostsRefresh has hosts look for what an upgrade would change.
func (s *server) postHostsRefresh(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	request, err := v1.DecodeRefresh(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	refreshed, err := c.controller.Refresh(c.Context(), request)
	if errors.Is(err, run.ErrNoHost) {
		return problem(http.StatusNotFound, "hosts", "", "%s; osupgrade-agent hosts lists those that are known", err)
	} else if err != nil {
		return err
	}
	s.send(c.w, c.Request, http.StatusOK, refreshed)
	return nil
}

// deleteHost deletes a host that will not come back. Otherwise it would hold its
// slot until it comes back: being silent does not put a host back into service.
func (s *server) deleteHost(c *call) error {
	name, why := c.PathValue("host"), c.query.Get("reason")
	if c.has("reason") {
		if wrong := (v1.Ask{Reason: why}).Validate("forget"); len(wrong) > 0 {
			return wrong
		}
	}
	c.audit.Reason = why
	if err := c.controller.Forget(c.Context(), name, run.Deletion{By: c.who.Name, Why: why}); errors.Is(err, run.ErrNoHost) {
		return problem(http.StatusNotFound, "host", name, "host %q is not known; osupgrade-agent hosts lists those that are", name)
	} else if err != nil {
		return err
	}
	s.Log.Info("host deleted", "tenant", c.tenant, "by", c.who.Name, "host", name, "reason", why)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// unknownHost answers a request about a host that is not known.
func unknownHost(name string) error {
	return problem(http.StatusNotFound, "host", name, "host %q is not known; osupgrade-agent hosts lists those that are", name)
}

const (
	// maxFeed is the largest number of windows in a feed: one an hour for a year.
	maxFeed = 366 * 24
	// windowsPerTenant is how many requests of one tenant compute windows
	// concurrently; with many calendars that takes seconds. A further request waits
	// for windowsWait.
	windowsPerTenant, windowsWait = 2, 5 * time.Second
)

// windowSlots are the slots of each tenant.
type windowSlots struct {
	mu    sync.Mutex
	slots map[string]chan struct{}
}

func (w *windowSlots) of(tenant string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.slots == nil {
		w.slots = map[string]chan struct{}{}
	}
	if w.slots[tenant] == nil {
		w.slots[tenant] = make(chan struct{}, windowsPerTenant)
	}
	return w.slots[tenant]
}

// windows gets windows from the controller once the tenant has a free slot.
func (s *server) windows(c *call, from, to time.Time, count int) ([]v1.Window, error) {
	late := time.NewTimer(windowsWait)
	defer late.Stop()
	slots := s.windowSlots.of(c.tenant)
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-c.Context().Done():
		return nil, c.Context().Err()
	case <-late.C:
		return nil, problem(http.StatusServiceUnavailable, "", "", "the limit of %d concurrent requests for windows of tenant %q is reached; try again", windowsPerTenant, c.tenant)
	}
	return c.controller.Windows(c.Context(), from, to, count)
}

// getWindows lists the next windows, or the windows between two times.
func (s *server) getWindows(c *call) error {
	filter, err := readWindowFilter(c)
	if err != nil {
		return err
	}
	windows, err := s.windows(c, filter.From, filter.To, filter.Count)
	if err != nil {
		return err
	}
	return s.sendFields(c, windows)
}

func readWindowFilter(c *call) (filter v1.WindowFilter, err error) {
	if filter.From, err = instant(c, "from"); err != nil {
		return filter, err
	}
	if filter.To, err = instant(c, "to"); err != nil {
		return filter, err
	}
	if text := c.query.Get("count"); c.query.Has("count") {
		if filter.Count, err = strconv.Atoi(text); err != nil || filter.Count < 1 {
			return filter, badRequest("count", text, fmt.Sprintf("is not a number of windows; use 1 to %d", v1.MaxWindowsListed))
		}
	}
	filter, wrong := filter.Around(time.Now())
	if len(wrong) > 0 {
		return filter, wrong
	}
	return filter, nil
}

// getFeed returns the windows of the next twelve months as an iCalendar text, for
// programs that subscribe to it.
func (s *server) getFeed(c *call) error {
	now := time.Now()
	windows, err := s.windows(c, now, now.AddDate(1, 0, 0), maxFeed)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", v1.FeedType)
	c.w.Header().Set("Content-Disposition", fmt.Sprintf(`inline; filename="os-upgrade-%s.ics"`, c.tenant))
	c.w.WriteHeader(http.StatusOK)
	if _, err := c.w.Write(v1.Feed(s.Site, c.tenant, now, windows)); err != nil {
		s.Log.Debug("the client is gone", "path", c.URL.Path, "error", err)
	}
	return nil
}

// getNews lists the news that are kept.
func (s *server) getNews(c *call) error {
	all, _, _, err := c.controller.News(c.Context(), 0)
	if err != nil {
		return err
	}
	return sendList(s, c, all, func(n v1.News) string { return n.ID })
}
