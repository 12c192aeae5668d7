package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// runsCommand lists the runs, or shows one with its events.
type runsCommand struct {
	operator
	ID     runID  `arg:"" optional:"" help:"Id of one run, to show it with its hosts and its events."`
	Result string `help:"Only runs that ended so: completed, partial, failed, aborted or timed-out."`
	Host   string `help:"Only runs with this host."`
	Since  string `help:"Only runs that were opened at this time or later, such as 2026-11-21, which begins at midnight in UTC, or 2026-11-21T01:00:00Z." placeholder:"TIME"`
	Until  string `help:"Only runs that were opened before this time." placeholder:"TIME"`
	Limit  int    `help:"How many runs at most, newest first." default:"20"`
}

// Run implements the command.
func (c *runsCommand) Run(ctx context.Context, out io.Writer) error {
	filter, err := c.filter()
	if err != nil {
		return misused(err)
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	if c.ID != 0 {
		run, err := api.Run(ctx, c.Tenant, uint64(c.ID))
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
	if len(runs) == 0 && filter == (v1.RunFilter{Limit: filter.Limit}) {
		_, err := fmt.Fprintf(out, "Tenant %s has no runs yet.\n", c.Tenant)
		return err
	}
	return listRuns(out, runs)
}

// filter reads the flags.
func (c *runsCommand) filter() (v1.RunFilter, error) {
	filter := v1.RunFilter{Result: c.Result, Host: c.Host, Limit: c.Limit}
	var errs [2]error
	filter.Since, errs[0] = readTime("--since", c.Since, time.UTC)
	filter.Until, errs[1] = readTime("--until", c.Until, time.UTC)
	if err := errors.Join(errs[:]...); err != nil {
		return filter, err
	}
	if c.Limit == 0 { // In a filter it would be the server's default.
		return filter, fmt.Errorf("--limit: 0 is out of range; use 1 to %d", v1.MaxRuns)
	}
	return filter, wrongFlags(filter.Validate())
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
	row(table, "events", "")
	for _, e := range events {
		row(table, "  "+e.At.Format(time.RFC3339), storyLine(e))
	}
}

// storyLine says in a line what happened: a person's reason comes after a
// colon.
func storyLine(e v1.RunEvent) string {
	text := e.Event
	if e.Host != "" {
		text += " " + e.Host
	}
	if e.By != "" {
		text += " by " + e.By
	}
	switch {
	case e.Text == "":
		return text
	case e.Event == finished && strings.HasPrefix(e.Text, abortedBy):
		// Who aborted it, and why, stands where it was.
		return text + " aborted"
	case e.By == "":
		return text + " " + e.Text
	case e.Event == opened, e.Event == approved:
		// The text begins with how it was opened, or what was approved.
		return text + ", " + e.Text
	}
	return text + ": " + e.Text
}

// The events that are told in words of their own, by their names.
var opened, approved, finished = message.Name(message.Opened{}), message.Name(message.Approved{}), message.Name(message.Finished{})

// abortedBy is how the text of the end of a run begins that was aborted.
const abortedBy = "aborted: aborted by "
