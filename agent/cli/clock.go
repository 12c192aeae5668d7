package cli

import (
	"context"
	"regexp"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// timeFlags say in which zone times are shown.
type timeFlags struct {
	UTC bool `help:"Show times in UTC (default: in the zone of the site)." name:"utc"`
}

// clock shows times to people: with their date and their zone, because who reads them
// may be at another place or read them on another day.
type clock struct {
	zone *time.Location
	now  time.Time
}

// clock returns the clock of a site in a zone. A zone that this machine does not know,
// or that the site does not tell, is UTC.
func (f timeFlags) clock(siteZone string) clock {
	c := clock{zone: time.UTC, now: time.Now()}
	if f.UTC || siteZone == "" {
		return c
	}
	if zone, err := time.LoadLocation(siteZone); err == nil {
		c.zone = zone
	}
	return c
}

// ask is clock in the zone that the API tells.
func (f timeFlags) ask(ctx context.Context, api *client.Client, tenant string) (clock, error) {
	if f.UTC {
		return f.clock(""), nil
	}
	state, err := api.State(ctx, tenant, "")
	if err != nil {
		return clock{}, err
	}
	return f.clock(state.SiteTimezone), nil
}

// at shows an instant, such as "Sat 2026-11-21 01:00:00 CET".
func (c clock) at(t time.Time) string { return t.In(c.zone).Format("Mon 2006-01-02 15:04:05 MST") }

// in shows how long it is until an instant, or since it, to the second.
func (c clock) in(t time.Time) string {
	d := c.now.Sub(t).Abs().Truncate(time.Second)
	return window.FormatDuration(d)
}

// since shows when something began and how long ago that is.
func (c clock) since(t time.Time) string {
	if !t.Before(c.now) {
		return "since " + c.at(t)
	}
	return "since " + c.at(t) + ", for " + c.in(t)
}

// instants are how the API's texts name times.
var instants = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// text shows a text of the API with its times as at shows them.
func (c clock) text(s string) string {
	return instants.ReplaceAllStringFunc(s, func(found string) string {
		t, err := time.Parse(time.RFC3339, found)
		if err != nil { // Such as the 31st of February.
			return found
		}
		return c.at(t)
	})
}
