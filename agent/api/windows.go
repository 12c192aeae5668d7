package api

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// maxFeed bounds the windows of a feed: one an hour for a year.
const maxFeed = 366 * 24

// getWindows answers the windows ahead, or those between two times.
func (s *server) getWindows(c *call) error {
	if err := s.onSite(c, "fields", "from", "to", "count"); err != nil {
		return err
	}
	filter, err := readWindowFilter(c)
	if err != nil {
		return err
	}
	windows, err := c.controller.Windows(c.Context(), filter.From, filter.To, filter.Count)
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
	windows, err := c.controller.Windows(c.Context(), now, now.AddDate(1, 0, 0), maxFeed)
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
