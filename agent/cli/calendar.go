package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/calendar"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// calendarCommand are the commands for calendars with a URL.
type calendarCommand struct {
	Refresh refreshCalendarCommand `cmd:"" help:"Fetch a calendar from its URL now, and report the result."`
}

// refreshCalendarCommand fetches a calendar.
type refreshCalendarCommand struct {
	operator
	Name string `arg:"" help:"Name of the calendar, as status shows it." complete:"calendars"`
}

// Run implements the command.
func (c *refreshCalendarCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	state, err := api.RefreshCalendar(ctx, c.Tenant, c.Name)
	if err != nil {
		return c.unknown(ctx, api, err)
	}
	err = c.Output.show(out, state, func(to *terminal) error {
		if state.Error == "" {
			to.linef("Fetched calendar %s from %s: %s.", c.Name, state.Host, text.Count(state.EventCount, "event", "events"))
		}
		for _, line := range state.LeftOut {
			to.line("Left out: " + line)
		}
		return nil
	})
	if err == nil && state.Error != "" {
		err = fmt.Errorf("cannot fetch calendar %s from %s: %s; %s", c.Name, state.Host, state.Error, inForce(c.format(), state))
	}
	return err
}

// unknown returns an error of a call; if there is no such calendar, with the names of those that
// the site fetches.
func (c *refreshCalendarCommand) unknown(ctx context.Context, api *client.Client, err error) error {
	if !client.Missing(err) {
		return err
	}
	declared, listErr := api.Calendars(ctx, c.Tenant)
	fetched, stateErr := api.CalendarStates(ctx, c.Tenant)
	if listErr != nil || stateErr != nil || slices.ContainsFunc(declared, func(d v1.CalendarInfo) bool { return d.Name == c.Name }) {
		return err // It may have no URL.
	}
	there := "the site fetches none for it; to declare one with a url: osupgrade-agent apply -f FILE"
	if len(fetched) > 0 {
		names := make([]string, len(fetched))
		for i, state := range fetched {
			names[i] = state.Name
		}
		there = "the site fetches " + text.ListOf(names, len(names), mostNames)
	}
	return fmt.Errorf("tenant %q has no calendar %s; %s", c.Tenant, c.Name, there)
}

// inForce says what is in force of a calendar that cannot be fetched.
func inForce(at timeFormat, c v1.CalendarState) string {
	switch {
	case c.FetchedAt != nil:
		return "the events fetched at " + at.at(*c.FetchedAt) + " stay in force"
	case c.Kind == string(calendar.Freeze):
		return "until it is fetched, no run starts, because a freeze may apply"
	}
	return "until it is fetched, it opens no window"
}

// fetched tells of a calendar with a URL: from where, how long ago, and what is wrong.
func fetched(at timeFormat, c v1.CalendarState) string {
	said := c.Name + ": "
	if c.FetchedAt != nil {
		said += fmt.Sprintf("%s, fetched %s ago from %s", text.Count(c.EventCount, "event", "events"), at.age(*c.FetchedAt), c.Host)
	} else {
		said += "not fetched from " + c.Host + " yet"
	}
	if c.Error != "" && c.FailingSince != nil {
		said += fmt.Sprintf("; failing %s (%s)", at.since(*c.FailingSince), c.Error)
	}
	return said
}

// adviseCalendars is about calendars that cannot be fetched.
func adviseCalendars(at timeFormat, all []v1.CalendarState) []advice {
	var todo []advice
	for _, c := range all {
		if c.Status == v1.CalendarFailing {
			todo = append(todo, advice{
				fmt.Sprintf("make calendar %s available at %s (%s); %s", c.Name, c.Host, c.Error, inForce(at, c)), command("calendar", "refresh", c.Name),
			})
		}
	}
	return todo
}
