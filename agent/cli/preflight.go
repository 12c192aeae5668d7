package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// rehearse shows what a start would do.
func (c *starting) rehearse(ctx context.Context, out io.Writer, api *client.Client, body v1.Start) error {
	p, err := api.Preflight(ctx, c.Tenant, body)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		err = c.json(out, p)
	} else {
		err = showPreflight(out, p)
	}
	if err == nil && p.Refused != "" {
		err = fmt.Errorf("a start would be refused now: %s", p.Refused)
	}
	return err
}

// showPreflight prints what a start would do.
func showPreflight(out io.Writer, p v1.Preflight) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "Nothing is started, because of --dry-run.")
	if p.Run == nil {
		return table.Flush()
	}
	members, leftOut := divideHosts(*p.Run)
	begins := "now"
	if p.Refused != "" {
		begins = "not now; this is what would begin at " + p.Run.OpenedAt.Format(time.RFC3339)
	}
	row(table, "begins", begins)
	row(table, "not after", p.Run.NotAfter.Format(time.RFC3339))
	row(table, "hosts", fmt.Sprintf("%d, and %d left out", len(members), len(leftOut)))
	row(table, "expected", expectation(p))
	for _, stage := range p.Run.Stages {
		row(table, "stage "+stage.Name, fmt.Sprintf("%s, at most %d out of service", text.Count(stage.Hosts, "host", "hosts"), stage.MaxUnavailable))
		showHosts(table, members, stage.Name)
	}
	for _, h := range leftOut {
		row(table, "left out "+h.Hostname, h.Note)
	}
	for _, m := range p.Missing {
		where := "missing on " + m.Host
		if m.Host == "" {
			where = "missing at the site"
		}
		row(table, where, strings.Join(m.What, "; "))
	}
	if len(p.Unknown) > 0 {
		row(table, "unknown", "these hosts do not say which scripts they have; their workers are of an older version or have too many: "+someOf(p.Unknown))
	}
	return table.Flush()
}

// expectation says how long the run will take and whether it fits.
func expectation(p v1.Preflight) string {
	if p.Usual == nil {
		return "unknown: no run of the history has upgraded a host"
	}
	basis := fmt.Sprintf("with %s to prepare and %s for a host, as in run %d", seconds(p.Usual.PrepareSeconds), seconds(p.Usual.HostSeconds), p.Usual.Run)
	switch {
	case p.Run.ExpectedEnd == nil && p.Run.Forecast != "":
		return p.Run.Forecast + " (" + basis + ")"
	case p.Run.ExpectedEnd == nil:
		return "unknown"
	}
	end := fmt.Sprintf("done at %s, after %s, %s", p.Run.ExpectedEnd.Format(time.RFC3339), p.Run.ExpectedEnd.Sub(p.Run.OpenedAt), basis)
	switch {
	case p.Run.Forecast != "":
		return "does not fit: " + p.Run.Forecast + "; " + end
	case p.Fits != nil && *p.Fits:
		return "fits: " + end
	}
	return end
}

func seconds(n int) string { return (time.Duration(n) * time.Second).String() }

// divideHosts returns the members of a run, in their order, and those that are left
// out.
func divideHosts(r v1.Run) (members, leftOut []v1.RunHost) {
	for _, h := range r.Hosts {
		if h.Stage == "" {
			leftOut = append(leftOut, h)
		} else {
			members = append(members, h)
		}
	}
	return members, leftOut
}

// maxInStage is how many hosts of a stage are shown.
const maxInStage = 50

// showHosts prints the hosts of a stage in their order.
func showHosts(table io.Writer, members []v1.RunHost, stage string) {
	n := 0
	for _, h := range members {
		if h.Stage != stage {
			continue
		}
		if n++; n > maxInStage {
			continue
		}
		var texts []string
		if h.ExpectedEnd != nil {
			texts = append(texts, "done at "+h.ExpectedEnd.Format(time.RFC3339))
		}
		if h.SlotReason != "" {
			texts = append(texts, "out of service now: "+h.SlotReason)
		}
		row(table, fmt.Sprintf("  %d. %s", n, h.Hostname), strings.Join(texts, "; "))
	}
	if n > maxInStage {
		row(table, fmt.Sprintf("  and %d more", n-maxInStage), "--output json has all")
	}
}

// someOf lists names, the first of them when they are many.
func someOf(names []string) string {
	const most = 20
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
