package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// maxMonths bounds a picture.
const maxMonths = 12

// picture shows the days of some months.
func (c *windowsCommand) picture(ctx context.Context, out io.Writer, site *time.Location, filter v1.WindowFilter) error {
	p, err := newPicture(filter, time.Now(), site)
	if err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	windows, err := c.drawn(ctx, api, p)
	if err != nil {
		return err
	}
	for _, w := range windows {
		if w.Skipped != nil {
			p.mark(w.Start, w.End, skippedDay)
		} else {
			p.mark(w.Start, w.End, open)
		}
	}
	if err := markFreezes(ctx, api, c.Tenant, p); err != nil {
		return err
	}
	text := p.draw(colourful(out))
	if len(windows) == v1.MaxWindowsListed {
		text += fmt.Sprintf("Only the first %d windows are marked.\n", v1.MaxWindowsListed)
	}
	if c.Environment != "" {
		text += "Windows are those of environment " + c.Environment + ".\n"
	}
	_, err = io.WriteString(out, text)
	return err
}

// drawn returns the windows of the months: those of the environment that is named, or else of the
// tenant.
func (c *windowsCommand) drawn(ctx context.Context, api *client.Client, p *picture) ([]v1.Window, error) {
	if c.Environment != "" {
		return api.EnvironmentWindows(ctx, c.Tenant, c.Environment, p.from(), p.to(), v1.MaxWindowsListed)
	}
	return api.Windows(ctx, c.Tenant, p.from(), p.to(), v1.MaxWindowsListed)
}

// markFreezes marks the days of a tenant's freezes. They are asked for by
// themselves, as a window that is wholly frozen is none.
func markFreezes(ctx context.Context, api *client.Client, tenant string, p *picture) error {
	calendars, err := api.CalendarsInForce(ctx, tenant)
	if err != nil {
		return err
	}
	for name, written := range calendars {
		if written.Kind != string(calendar.Freeze) {
			continue
		}
		freeze, wrong := written.Parse(name)
		if len(wrong) > 0 {
			return fmt.Errorf("cannot read calendar %s: %w", name, wrong)
		}
		for o := range freeze.Occurrences(p.site, p.from(), p.to()) {
			p.mark(o.Start, o.End, frozen)
		}
	}
	return nil
}

// mark says what a day is: bits, as a day may be several.
type mark uint8

const (
	open mark = 1 << iota
	frozen
	// skippedDay is seen where nothing else is.
	skippedDay
)

// picture is a stretch of whole months. Dates are their midnights in UTC.
type picture struct {
	site        *time.Location
	clock       *window.Clock
	first, last time.Time // First of a month, first of the month after.
	days        map[time.Time]mark
}

// newPicture returns the months that a filter chooses: by default those of now
// and of a month later.
func newPicture(filter v1.WindowFilter, now time.Time, site *time.Location) (*picture, error) {
	clock := window.NewClock(site)
	from, last := now, time.Time{}
	if !filter.From.IsZero() {
		from = filter.From
	}
	first := monthOf(clock.Wall(from))
	if filter.To.IsZero() {
		last = first.AddDate(0, 2, 0)
	} else {
		last = monthOf(clock.Wall(filter.To.Add(-1))).AddDate(0, 1, 0)
	}
	if last.After(first.AddDate(0, maxMonths, 0)) {
		return nil, misusedf("--to: %s is too late for a picture; use at most %d months from --from, %s",
			timeFormat{zone: site}.at(filter.To), maxMonths, timeFormat{zone: site}.at(from))
	}
	return &picture{site: site, clock: clock, first: first, last: last, days: map[time.Time]mark{}}, nil
}

func monthOf(wall time.Time) time.Time {
	year, month, _ := wall.Date()
	return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
}

func (p *picture) from() time.Time { return p.clock.First(p.first) }

func (p *picture) to() time.Time { return p.clock.First(p.last) }

// mark marks the days that a span touches.
func (p *picture) mark(start, end time.Time, as mark) {
	if from := p.from(); start.Before(from) {
		start = from
	}
	if to := p.to(); end.After(to) {
		end = to
	}
	if !start.Before(end) {
		return
	}
	const day = 24 * time.Hour
	last := p.clock.Wall(end.Add(-1))
	for date := p.clock.Wall(start).Truncate(day); !date.After(last); date = date.Add(day) {
		p.days[date] |= as
	}
}

const legend = "* a window is open   x frozen   # open in part, frozen in part\n"

// draw returns the months as text.
func (p *picture) draw(colour bool) string {
	var text strings.Builder
	for month := p.first; month.Before(p.last); month = month.AddDate(0, 1, 0) {
		p.drawMonth(&text, month, colour)
	}
	text.WriteString(legend)
	if slices.ContainsFunc(slices.Collect(maps.Values(p.days)), func(m mark) bool { return m == skippedDay }) {
		text.WriteString("- a window is skipped\n")
	}
	fmt.Fprintf(&text, "Days are those of %s.\n", zoneTitle(p.site))
	return text.String()
}

// zoneTitle is a zone for people. That of the machine does not know its own name.
func zoneTitle(zone *time.Location) string {
	if zone == time.Local {
		return "your time zone"
	}
	return zone.String()
}

func (p *picture) drawMonth(text *strings.Builder, month time.Time, colour bool) {
	fmt.Fprintf(text, "%s\n Mo  Tu  We  Th  Fr  Sa  Su\n", month.Format("January 2006"))
	line := strings.Repeat("    ", sinceMonday(month))
	for date := month; date.Month() == month.Month(); date = date.AddDate(0, 0, 1) {
		line += cell(date.Day(), p.days[date], colour)
		if date.Weekday() == time.Sunday {
			text.WriteString(strings.TrimRight(line, " ") + "\n")
			line = ""
		}
	}
	if line != "" {
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	text.WriteString("\n")
}

func sinceMonday(date time.Time) int { return (int(date.Weekday()) + 6) % 7 }

// cells are the letter of each kind of day and, where there is colour, its
// background (ECMA-48 8.3.117): the letter is there in any case, for those who
// see no colour.
var cells = map[mark]struct {
	letter byte
	colour string
}{0: {' ', ""}, open: {'*', "30;42"}, frozen: {'x', "30;46"}, open | frozen: {'#', "30;43"}, skippedDay: {'-', "30;47"}}

func cell(day int, m mark, colour bool) string {
	if m != skippedDay {
		m &^= skippedDay
	}
	kind := cells[m]
	text := fmt.Sprintf("%3d%c", day, kind.letter)
	if !colour || kind.colour == "" {
		return text
	}
	return "\x1b[" + kind.colour + "m" + text + "\x1b[0m"
}

// colourful reports whether colours do any good where the output goes
// (no-color.org).
func colourful(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
