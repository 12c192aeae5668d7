package api

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

const (
	// maxFeed bounds the windows of a feed: one an hour for a year.
	maxFeed = 366 * 24
	// looksPerTenant is how many requests of one tenant look ahead at once, and
	// lookWait how long another one waits for its turn: with many calendars it
	// is the work of seconds.
	looksPerTenant, lookWait = 2, 5 * time.Second
)

// windows asks the controller for windows when it is the tenant's turn.
func (s *server) windows(c *call, from, to time.Time, count int) ([]v1.Window, error) {
	late := time.NewTimer(lookWait)
	defer late.Stop()
	turns := s.turns[c.tenant]
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-c.Context().Done():
		return nil, c.Context().Err()
	case <-late.C:
		return nil, problem(http.StatusServiceUnavailable, "", "", "%d requests for windows of tenant %q are under way, and no more at a time; try again", looksPerTenant, c.tenant)
	}
	return c.controller.Windows(c.Context(), from, to, count)
}

// getWindows answers the windows ahead, or those between two times.
func (s *server) getWindows(c *call) error {
	if err := s.onSite(c, "fields", "from", "to", "count"); err != nil {
		return err
	}
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

// getFeed answers the windows of the next twelve months as an iCalendar text,
// for readers that subscribe to one.
func (s *server) getFeed(c *call) error {
	if err := s.onSite(c); err != nil {
		return err
	}
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
