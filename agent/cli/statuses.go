package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// allTenants is the --tenant that means every tenant that the caller may see.
const allTenants = "*"

const (
	// statusRows is how many lines the table of tenants has at most before it leaves out those
	// in which nothing happens: with its head and the line about them it fills a screen of 60.
	statusRows = 58
	// statusWidth is how wide the table is where the output has no width of its own.
	statusWidth = 100
	// longestName is where the name of a tenant or an environment is cut.
	longestName = 24
)

// glance is a tenant, or an environment of one, as a row of a table.
type glance struct {
	v1.TenantStatus
	todo []advice
}

// showAll shows all tenants that the caller may see, the most urgent first.
func (c *statusCommand) showAll(ctx context.Context, out io.Writer, api *client.Client) error {
	statuses, err := api.Statuses(ctx)
	if err != nil {
		return err
	}
	at := c.format()
	all := glances(at, statuses)
	if c.Output == asJSON {
		for i, g := range all {
			statuses[i] = g.TenantStatus
		}
		return c.json(out, statuses)
	}
	to := newTerminal(out)
	printGlances(to, at, all, c.All)
	return to.err
}

// glances returns the tenants in the order of their urgency.
func glances(at timeFormat, statuses []v1.TenantStatus) []glance {
	all := make([]glance, len(statuses))
	for i, s := range statuses {
		all[i].TenantStatus = s
		if s.Situation == nil {
			all[i].todo = []advice{{s.Trouble, ""}}
			continue
		}
		if s.Environments != nil {
			all[i] = glanceOver(s)
		} else {
			all[i].todo = advise(*s.Situation, s.Run)
		}
		all[i].todo = append(all[i].todo, adviseCalendars(at, s.Situation.Calendars)...)
	}
	slices.SortStableFunc(all, func(a, b glance) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), a.opens().Compare(b.opens()), cmp.Compare(a.Tenant, b.Tenant))
	})
	return all
}

// rank is lower for what is more urgent: a tenant that cannot be seen, a run that needs somebody,
// a tenant that does, a run, a tenant with a window, and one without.
func (g glance) rank() int {
	needed := len(g.todo) > 0
	switch {
	case g.Situation == nil:
		return 0
	case needed && g.runs():
		return 1
	case needed:
		return 2
	case g.runs():
		return 3
	case g.Situation.NextUpgradeAt != nil:
		return 4
	}
	return 5
}

// runs reports whether a run is under way.
func (g glance) runs() bool {
	if g.Environments != nil {
		return g.Environments.UnderWay > 0
	}
	return g.Run != nil && !g.Run.Finished()
}

// opens is when the next window opens, or zero.
func (g glance) opens() time.Time {
	if g.Situation == nil || g.Situation.NextUpgradeAt == nil {
		return time.Time{}
	}
	return *g.Situation.NextUpgradeAt
}

// isQuiet reports whether nothing happens in a tenant, and nobody is needed.
func (g glance) isQuiet() bool { return g.rank() > 3 }

// printGlances prints a line for each tenant. Of more than fill a screen it leaves out quiet ones.
func printGlances(to *terminal, at timeFormat, all []glance, each bool) {
	if len(all) == 0 {
		to.line("There is no tenant that you may see.")
		return
	}
	shown := all
	for !each && len(shown) > statusRows && shown[len(shown)-1].isQuiet() {
		shown = shown[:len(shown)-1]
	}
	printRows(to, at, "TENANT", shown)
	if hidden := len(all) - len(shown); hidden > 0 {
		to.linef("%s; --all shows them.", text.Count(hidden, "more tenant is idle and needs nothing", "more tenants are idle and need nothing"))
	}
}

// printRows prints a table of tenants or environments.
func printRows(to *terminal, at timeFormat, head string, shown []glance) {
	width := statusWidth
	if to.live {
		width = to.width
	}
	rows := [][]string{{head, "NOW", "PROGRESS", "NEXT WINDOW", "NEEDS YOU"}}
	var widths [4]int
	for _, g := range shown {
		rows = append(rows, []string{text.FitColumns(g.Tenant, longestName, "…"), g.now(), g.progress(), g.nextWindow(at), g.needs(at)})
	}
	for _, row := range rows {
		for i := range widths {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i])+2)
		}
	}
	left := max(width-widths[0]-widths[1]-widths[2]-widths[3], len("NEEDS YOU"))
	var t table
	for _, row := range rows {
		row[4] = text.FitColumns(row[4], left, "…")
		t.addIn(map[int]string{4: yellow}, row...)
	}
	t.colours[0] = nil
	t.print(to)
}

// glanceOver is a tenant with environments as a row: what it shows is of all of them together.
func glanceOver(s v1.TenantStatus) glance {
	over, situation := *s.Environments, *s.Situation
	situation.Status, situation.NextUpgradeAt, situation.OpenWindow = over.First.Status, over.NextUpgradeAt, over.OpenWindow
	g := glance{TenantStatus: s}
	g.Situation, g.Counts = &situation, over.Counts
	if over.NeedPerson > 0 {
		for _, a := range adviseEnvironment(over.First, over.First.Run) {
			g.todo = append(g.todo, advice{over.First.Name + ": " + a.what, a.command})
		}
	}
	if others := over.NeedPerson - 1; others > 0 {
		g.todo = append(g.todo, advice{"look at " + text.Count(others, "other environment that needs you", "other environments that need you"), ""})
	}
	g.todo = append(g.todo, adviseUnplaced(situation)...)
	return g
}

// now says what a tenant does.
func (g glance) now() string {
	switch {
	case g.Situation == nil:
		return "unknown"
	case g.runs() && g.Environments != nil:
		return fmt.Sprintf("%d of %d in a run", g.Environments.UnderWay, g.Environments.All)
	case g.runs():
		return fmt.Sprintf("%s, run %d", g.Situation.Status, g.Run.ID)
	case g.Situation.Frozen != nil:
		return "frozen"
	}
	return g.Situation.Status
}

// progress says how far the newest run is or came.
func (g glance) progress() string {
	members := 0
	for _, n := range g.Counts {
		members += n
	}
	if members == 0 {
		return "-"
	}
	line := fmt.Sprintf("%d of %d", g.Counts[string(run.Upgraded)], members)
	if bad := g.Counts[string(run.HostFailed)] + g.Counts[string(run.Unreachable)]; bad > 0 {
		line += fmt.Sprintf(", %d failed", bad)
	}
	return line
}

// nextWindow says when a window opens, or how long the open one stays open.
func (g glance) nextWindow(at timeFormat) string {
	span := func(d time.Duration) string {
		if d < time.Minute {
			return "less than 1m"
		}
		return window.FormatDuration(d.Truncate(time.Minute))
	}
	if g.Situation == nil {
		return "unknown"
	}
	open, skipped := g.Situation.OpenWindow, g.Situation.SkippedWindow != nil
	switch {
	case open != nil && skipped:
		return "skipped, " + span(open.End.Sub(at.now)) + " left"
	case open != nil:
		return "open, " + span(open.End.Sub(at.now)) + " left"
	case g.opens().IsZero():
		return "none"
	case skipped:
		return "in " + span(g.opens().Sub(at.now)) + ", after a skipped one"
	}
	return "in " + span(g.opens().Sub(at.now))
}

// needs says what somebody has to do first, and how much there is besides.
func (g glance) needs(at timeFormat) string {
	if len(g.todo) == 0 {
		return "-"
	}
	things := 0
	for _, a := range g.todo {
		if !strings.HasPrefix(a.what, "or ") { // Else it is another way to do the one before.
			things++
		}
	}
	line := at.text(g.todo[0].what)
	if things > 1 {
		line = fmt.Sprintf("%d things: %s", things, line)
	}
	return line
}
