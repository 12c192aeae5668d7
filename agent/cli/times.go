package cli

import (
	"context"
	"regexp"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// timeFlags say in which zone times are shown.
type timeFlags struct {
	UTC bool `help:"Show times in UTC (default: in the zone of the site)." name:"utc"`
}

// timeFormat shows times to people: with their date and their zone, because who reads them
// may be at another place or read them on another day.
type timeFormat struct {
	zone *time.Location
	now  time.Time
}

// format returns the format for a site in a zone. A zone that this machine does not know,
// or that the site does not tell, is UTC.
func (f timeFlags) format(siteZone string) timeFormat {
	c := timeFormat{zone: time.UTC, now: time.Now()}
	if f.UTC || siteZone == "" {
		return c
	}
	if zone, err := time.LoadLocation(siteZone); err == nil {
		c.zone = zone
	}
	return c
}

// siteFormat is format in the zone that the API tells.
func (f timeFlags) siteFormat(ctx context.Context, api *client.Client, tenant string) (timeFormat, error) {
	if f.UTC {
		return f.format(""), nil
	}
	state, err := api.State(ctx, tenant, "")
	if err != nil {
		return timeFormat{}, err
	}
	return f.format(state.SiteTimezone), nil
}

// at shows an instant, such as "Sat 2026-11-21 01:00:00 CET".
func (f timeFormat) at(t time.Time) string { return t.In(f.zone).Format("Mon 2006-01-02 15:04:05 MST") }

// in shows how long it is until an instant, or since it, to the second.
func (f timeFormat) in(t time.Time) string {
	d := f.now.Sub(t).Abs().Truncate(time.Second)
	return window.FormatDuration(d)
}

// since shows when something began and how long ago that is.
func (f timeFormat) since(t time.Time) string {
	if !t.Before(f.now) {
		return "since " + f.at(t)
	}
	return "since " + f.at(t) + ", for " + f.in(t)
}

// instants are how the API's texts name times.
var instants = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// text shows a text of the API with its times as at shows them.
func (f timeFormat) text(s string) string {
	return instants.ReplaceAllStringFunc(s, func(found string) string {
		t, err := time.Parse(time.RFC3339, found)
		if err != nil { // Such as the 31st of February.
			return found
		}
		return f.at(t)
	})
}
