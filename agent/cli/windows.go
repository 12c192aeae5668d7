package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// windowsCommand shows when runs may be under way.
type windowsCommand struct {
	operator
	environmentFlag
	From     string  `help:"Only windows that end after this time, such as 2026-12-01 or 2026-12-01T18:00:00Z (default: now)." placeholder:"TIME"`
	To       string  `help:"Only windows that open before this time (default: ten years ahead)." placeholder:"TIME"`
	Count    *int    `help:"Show at most this many windows, 1 to 1000 (default: 10)." placeholder:"N"`
	Month    bool    `help:"Draw this month and the next, or those from --from to --to, as calendar pages."`
	Timezone *string `help:"Time zone to show times in; with --month also that of site-local freezes (default: yours)." placeholder:"ZONE"`
}

// Run implements the command.
func (c *windowsCommand) Run(ctx context.Context, out io.Writer) error {
	site, filter, err := c.read()
	if err != nil {
		return misused(err)
	}
	if c.Month {
		return c.picture(ctx, out, site, filter)
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	state, err := api.State(ctx, c.Tenant, "")
	if err != nil {
		return err
	}
	list := api.Windows
	if c.Environment != "" || state.Environments > 0 {
		list = func(ctx context.Context, tenant string, from, to time.Time, count int) ([]v1.Window, error) {
			return api.EnvironmentWindows(ctx, tenant, c.Environment, from, to, count)
		}
	}
	windows, err := list(ctx, c.Tenant, filter.From, filter.To, filter.Count)
	if err != nil {
		return err
	}
	return c.Output.show(out, windows, func(to *terminal) error {
		if c.Environment != "" || state.Environments > 0 { // Which windows calendars would open is known to the site alone.
			listWindows(to, windows, site)
			showFetched(to, timeFormat{zone: site, now: time.Now()}, state.Calendars)
			return nil
		}
		swallowed, err := c.swallowed(ctx, api, state, filter, windows)
		if err != nil {
			return err
		}
		listWindows(to, append(windows, swallowed...), site)
		showFetched(to, timeFormat{zone: site, now: time.Now()}, state.Calendars)
		return nil
	})
}

// showFetched prints how old the calendars with a URL are.
func showFetched(to *terminal, at timeFormat, all []v1.CalendarState) {
	for i, c := range all {
		if i == 0 {
			to.line("")
		}
		to.line("Calendar " + fetched(at, c))
	}
}

// longestSwallowed is how far ahead windows that a freeze swallows are looked for, unless more is
// asked for.
const longestSwallowed = 366 * 24 * time.Hour

// swallowed returns the windows of which a freeze leaves nothing, among those that are listed.
// They are none to the site.
func (c *windowsCommand) swallowed(ctx context.Context, api *client.Client, state v1.State, filter v1.WindowFilter, listed []v1.Window) ([]v1.Window, error) {
	calendars, err := api.CalendarsInForce(ctx, c.Tenant)
	if err != nil {
		return nil, err
	}
	site, err := time.LoadLocation(state.SiteTimezone)
	if err != nil { // This machine does not know it.
		site = time.UTC
	}
	schedule, err := v1.ScheduleOf(state.OSUpgrade, calendars, site)
	if err != nil || len(schedule.Freezes) == 0 {
		return nil, err
	}
	from, to := filter.From, filter.To
	if from.IsZero() {
		from = time.Now()
	}
	if to.IsZero() {
		to = from.Add(longestSwallowed)
	}
	if n := len(listed); n > 0 && n == cmp.Or(filter.Count, v1.DefaultWindows) {
		to = listed[n-1].Start
	}
	return swallowedBy(schedule, from, to), nil
}

// swallowedBy returns the windows of a schedule between two instants of which its freezes leave
// nothing.
func swallowedBy(schedule window.Schedule, from, to time.Time) []v1.Window {
	withoutFreezes := schedule
	withoutFreezes.Freezes = nil
	declared, opens := v1.Windows(withoutFreezes, from, to, v1.MaxWindowsListed), map[time.Time]bool{}
	if len(declared) > 0 { // One that has begun before from may have been open then.
		from = times.Sooner(from, declared[0].Start)
	}
	left := v1.Windows(schedule, from, to, v1.MaxWindowsListed)
	for _, w := range left {
		opens[w.WindowStart] = true
	}
	if n := len(left); n == v1.MaxWindowsListed { // What comes after the last one is not known.
		to = left[n-1].WindowStart
	}
	var swallowed []v1.Window
	for _, w := range declared {
		if opens[w.Start] || w.Start.After(to) {
			continue
		}
		w.Length = noLength
		for _, freeze := range schedule.Freezes {
			for o := range freeze.Occurrences(schedule.Site, w.Start, w.End) {
				w.Cuts = append(w.Cuts, v1.WindowCut{Calendar: freeze.Name(), Summary: o.Origin.Summary, From: o.Start, To: o.End})
			}
		}
		swallowed = append(swallowed, w)
	}
	return swallowed
}

// read reads the flags; a time that is not given is zero.
func (c *windowsCommand) read() (*time.Location, v1.WindowFilter, error) {
	var filter v1.WindowFilter
	site, err := c.zone()
	if err != nil {
		return nil, filter, err
	}
	var errs [2]error
	filter.From, errs[0] = readTime("--from", c.From, site)
	filter.To, errs[1] = readTime("--to", c.To, site)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, filter, err
	}
	if c.Count != nil {
		filter.Count = *c.Count
		if filter.Count < 1 || filter.Count > v1.MaxWindowsListed {
			return nil, filter, fmt.Errorf("--count: %d is out of range; use 1 to %d", filter.Count, v1.MaxWindowsListed)
		}
	}
	if _, wrong := filter.Around(time.Now()); len(wrong) > 0 {
		return nil, filter, wrongFlags(wrong)
	}
	return site, filter, c.agree()
}

// zone returns the zone in which times are shown.
func (c *windowsCommand) zone() (*time.Location, error) {
	if c.Timezone == nil {
		return c.format().zone, nil
	}
	zone, err := window.ParseZone(*c.Timezone)
	switch {
	case c.UTC:
		return nil, errors.New("--timezone and --utc name two zones; leave one of them out")
	case err != nil:
		return nil, fmt.Errorf("--timezone: %w", err)
	case *c.Timezone == "" || *c.Timezone == window.SiteLocal:
		return nil, fmt.Errorf("--timezone: %q means another zone at each site; use UTC or an IANA name such as Europe/Stockholm", *c.Timezone)
	}
	return zone.Location(nil), nil
}

// agree checks that the flags go together.
func (c *windowsCommand) agree() error {
	switch {
	case c.Month && c.Output == asJSON:
		return errors.New("--month draws a picture; leave it out, or leave out --output json")
	case c.Month && c.Count != nil:
		return errors.New("--month shows all windows of its months; leave out --count")
	}
	return nil
}

// noLength is the length of a window that a freeze swallows.
const noLength = "-"

// listWindows prints windows by their start, those that a freeze swallows among them.
func listWindows(to *terminal, windows []v1.Window, site *time.Location) {
	slices.SortStableFunc(windows, func(a, b v1.Window) int { return a.Start.Compare(b.Start) })
	if len(windows) == 0 {
		to.line("No window opens in this time.")
		return
	}
	at := timeFormat{zone: site}
	var t table
	several := slices.ContainsFunc(windows, func(w v1.Window) bool { return w.Environment != "" })
	t.add("OPENS", "CLOSES", "LENGTH", "WINDOW OF", "OPENED BY", "CUT BY", "NOTE")
	for _, w := range windows {
		of := ""
		if several {
			of = cmp.Or(w.Environment, "the tenant")
		}
		t.add(at.at(w.Start), at.at(w.End), w.Length, of,
			joined(w.Sources), cmp.Or(joined(w.Cuts), "-"), cmp.Or(clockNote(w), "-"))
	}
	t.print(to)
}

// joined lists the first few of what names itself.
func joined[T fmt.Stringer](all []T) string {
	texts := make([]string, 0, len(all))
	for _, one := range all {
		texts = append(texts, one.String())
	}
	return text.List(texts, maxShown)
}

// clockNote tells what a change of the clock does to a window.
func clockNote(w v1.Window) string {
	var notes []string
	if s := w.Skipped; s != nil {
		notes = append(notes, fmt.Sprintf("skipped by %s: %s", s.By, s.Reason))
	}
	if w.Length == noLength {
		notes = append(notes, "frozen: it does not open")
	}
	if w.StartMoved {
		notes = append(notes, "opens late: the clock skips its time")
	}
	if w.EndMoved {
		notes = append(notes, "the clock changes meanwhile")
	}
	return strings.Join(notes, ", ")
}
