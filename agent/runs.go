package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// runsCommand lists the runs, or shows one with its story.
type runsCommand struct {
	operator
	ID     uint64    `arg:"" optional:"" help:"Id of one run, to show it with its hosts and its story."`
	Result string    `help:"Only runs that ended so: completed, partial, failed, aborted or timed-out."`
	Host   string    `help:"Only runs with this host."`
	Since  time.Time `help:"Only runs that were opened at this time or later, such as 2026-11-21T01:00:00Z."`
	Until  time.Time `help:"Only runs that were opened before this time."`
	Limit  int       `help:"How many runs at most, newest first." default:"20"`
}

// Run implements the command.
func (c *runsCommand) Run(ctx context.Context, out io.Writer) error {
	filter := v1.RunFilter{Result: c.Result, Host: c.Host, Since: c.Since, Until: c.Until, Limit: c.Limit}
	if wrong := filter.Validate(); len(wrong) > 0 {
		return wrong
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	if c.ID != 0 {
		run, err := api.Run(ctx, c.Tenant, c.ID)
		if err != nil {
			return err
		}
		return c.one(out, run)
	}
	runs, err := api.Runs(ctx, c.Tenant, filter)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return c.json(out, runs)
	}
	return listRuns(out, runs)
}

func (c *runsCommand) one(out io.Writer, run v1.Run) error {
	if c.Output == "json" {
		return c.json(out, run)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	showRun(table, run)
	showStory(table, run.Events)
	return table.Flush()
}

func listRuns(out io.Writer, runs []v1.Run) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(out, "There is no such run.")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "RUN\tBEGUN\tTOOK\tBY\tRESULT")
	for _, r := range runs {
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", r.ID, r.OpenedAt.Format(time.RFC3339), took(r), beginner(r), headline(r))
	}
	return table.Flush()
}

func took(r v1.Run) string {
	if r.EndedAt == nil {
		return "-"
	}
	return r.EndedAt.Sub(r.OpenedAt).String()
}

// showStory prints what happened, oldest first.
func showStory(table io.Writer, events []v1.RunEvent) {
	if len(events) == 0 {
		return
	}
	row(table, "story", "")
	for _, e := range events {
		text := e.Event
		for _, more := range []string{e.Host, by(e.By), e.Text} {
			if more != "" {
				text += " " + more
			}
		}
		row(table, "  "+e.At.Format(time.RFC3339), text)
	}
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return "by " + who
}

// retryCommand starts a run of the hosts that an earlier one left.
type retryCommand struct {
	startCommand
	ID uint64 `arg:"" help:"Id of the run whose failed and skipped hosts are tried again."`
}

// Run implements the command.
func (c *retryCommand) Run(ctx context.Context, out io.Writer) error { return c.start(ctx, out, c.ID) }
