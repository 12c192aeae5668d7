// Package function has the functions of the provider: next_windows, in_window
// and normalize_duration. They calculate as the agent does.
//
// They are pure and need no server and no provider configuration, and so work
// in terraform console, check blocks and terraform test alike. They do not know
// the site's zone: what is site-local counts as UTC, unless it is given.
package function

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/function"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// All lists the functions.
func All() []func() function.Function {
	return []func() function.Function{newNextWindows, newInWindow, newNormalizeDuration}
}

// named is a function that bears a name.
type named string

// Metadata names the function.
func (n named) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = string(n)
}

// Where the arguments stand that both functions on windows have.
const (
	windowsAt int64 = iota
	calendarsAt
	instantAt
)

func windowsParameter() function.Parameter {
	return function.DynamicParameter{
		Name: "windows", AllowNullValue: true,
		MarkdownDescription: "The maintenance windows: a list of objects with the attributes of `maintenance_windows` of `osupgrade_config`, " +
			"such as `osupgrade_config.acme.maintenance_windows`. `[]` or `null` means none.",
	}
}

func calendarsParameter() function.Parameter {
	return function.DynamicParameter{
		Name: "calendars", AllowNullValue: true,
		MarkdownDescription: "The calendars: a list of objects with the attributes `name`, `kind` and `events` or `ics` of `osupgrade_calendar`, " +
			"such as `[osupgrade_calendar.christmas]`, or a map of them by name. `[]` or `null` means none.",
	}
}

func siteParameter() function.Parameter {
	return function.StringParameter{
		Name:                "site_timezone",
		MarkdownDescription: "The IANA name of the site's zone, once at most, for what is `site-local`; `UTC` by default.",
	}
}

// instant reads the text of an instant.
func instant(text string) (time.Time, *function.FuncError) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, function.NewArgumentFuncError(instantAt, fmt.Sprintf(
			"%q is not an instant; use RFC 3339, such as 2026-12-24T18:00:00Z or the result of timestamp()", text))
	}
	return at, nil
}

// site reads the site's zone, which may be left out. Position is where it
// stands.
func site(texts []string, position int64) (*time.Location, *function.FuncError) {
	switch len(texts) {
	case 0:
		return time.UTC, nil
	case 1:
		zone, err := window.ParseZone(texts[0])
		if err == nil && (texts[0] == "" || zone.String() == window.SiteLocal) {
			err = fmt.Errorf("%q does not say where the site is; use UTC or an IANA name such as Europe/Stockholm", texts[0])
		}
		if err != nil {
			return nil, function.NewArgumentFuncError(position, err.Error())
		}
		return zone.Location(time.UTC), nil
	}
	return nil, function.NewArgumentFuncError(position, fmt.Sprintf("there are %d zones of the site; give one, or none", len(texts)))
}
