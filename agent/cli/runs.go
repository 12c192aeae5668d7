package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// runsCommand lists the runs, or shows one with its events.
type runsCommand struct {
	operator
	hostFlags
	selectorFlags
	ID     runID  `arg:"" optional:"" help:"Show this run with its hosts and events." complete:"runs"`
	Result string `help:"Only runs with this result: completed, partial, failed, aborted or timed-out."`
	Since  string `help:"Only runs that started at this time or later, such as 2026-11-21 (midnight in UTC) or 2026-11-21T01:00:00Z." placeholder:"TIME"`
	Until  string `help:"Only runs that started before this time." placeholder:"TIME"`
	Limit  int    `help:"Show at most this many runs, newest first." default:"20"`
}

// Help describes the command.
func (c *runsCommand) Help() string {
	return `--host, --label and --role list only the runs in which such a host took part. With an ID, --label and
--role choose the hosts that are shown, and --host shows what the run changes on this host or, with --output and no
value, what its scripts printed.

The id of a run is its position in the log of its tenant. A later run has a higher id, but ids are not
consecutive, because other records of the log use numbers too.`
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
	if c.Output == asPrinted {
		outputs, err := api.Output(ctx, c.Tenant, uint64(c.ID), c.Hosts[0])
		if err != nil {
			return err
		}
		return c.printed(out, outputs)
	}
	if c.ID != 0 && len(c.Hosts) > 0 {
		plan, err := api.Plan(ctx, c.Tenant, uint64(c.ID), c.Hosts[0])
		if err != nil {
			return err
		}
		return c.plan(out, plan, planSummary(plan))
	}
	if c.ID != 0 {
		chosen, err := c.hostsOf(ctx, api, c.Tenant)
		if err != nil {
			return err
		}
		run, err := api.Run(ctx, c.Tenant, uint64(c.ID))
		if err != nil {
			return err
		}
		return c.one(out, run, chosen)
	}
	runs, why, err := api.RunsOf(ctx, c.Tenant, filter)
	if err != nil {
		return err
	}
	return c.Output.show(out, runs, func(to *terminal) error {
		if len(why) > 0 {
			to.line(sentence(filter.MatchesNone(why)))
			return nil
		}
		if len(runs) == 0 && filter.IsZero() && filter.Result == "" && filter.Since.IsZero() && filter.Until.IsZero() {
			to.linef("Tenant %s has no runs yet.", c.Tenant)
			return nil
		}
		listRuns(to, c.format(), runs)
		return nil
	})
}

// Validate implements kong's hook.
func (c *runsCommand) Validate() error {
	if c.ID != 0 && len(c.Hosts) > 0 && len(c.Hosts)+len(c.Labels)+len(c.Roles) > 1 {
		return errors.New("--host: with the id of a run it shows what the run changes on one host; give one --host and leave out --label and --role")
	}
	if c.Output == asPrinted && (c.ID == 0 || len(c.Hosts) == 0) {
		return errors.New("--output: to see what the scripts of a host printed, give the id of a run and --host; otherwise use --output text or json")
	}
	return nil
}

// printed shows what the actions of a host have printed in a run.
func (c *runsCommand) printed(out io.Writer, outputs []v1.ActionOutput) error {
	if len(outputs) == 0 {
		_, err := fmt.Fprintf(out, "Nothing that host %s printed in run %d is kept.\n", c.Hosts[0], c.ID)
		return err
	}
	for i, o := range outputs {
		head := fmt.Sprintf("==> %s, %s <==\n", o.Action, c.format().at(o.At))
		if i > 0 {
			head = "\n" + head
		}
		if o.Cut {
			head += fmt.Sprintf("(the last %d KiB)\n", message.MaxOutput>>10)
		}
		if _, err := io.WriteString(out, head+strings.TrimRight(o.Output, "\n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// filter reads the flags.
func (c *runsCommand) filter() (v1.RunFilter, error) {
	filter := v1.RunFilter{Result: c.Result, Limit: c.Limit}
	var errs [3]error
	filter.Selector, errs[2] = c.selector()
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

func (c *runsCommand) one(out io.Writer, r v1.Run, chosen chosenHosts) error {
	return c.Output.show(out, chosen.only(r), func(to *terminal) error {
		at := c.format()
		var f facts
		runFacts(&f, to, at, r)
		chosen.fact(&f, r)
		f.print(to)
		showStages(to, r)
		c.showHosts(to, at, chosen.only(r))
		showStory(to, at, r.Events)
		return nil
	})
}

func listRuns(to *terminal, at timeFormat, runs []v1.Run) {
	if len(runs) == 0 {
		to.line("No run matches.")
		return
	}
	var t table
	several := slices.ContainsFunc(runs, func(r v1.Run) bool { return r.Environment != "" })
	t.add("RUN", "ENVIRONMENT", "RELEASE", "STARTED", "TOOK", "BY", "RESULT")
	for _, r := range runs {
		colour, environment := "", ""
		if r.Finished() {
			colour = resultColour(r.Result)
		}
		if several {
			environment = environmentOf(r)
		}
		t.addIn(map[int]string{6: colour}, fmt.Sprint(r.ID), environment, releaseName(r), at.at(r.OpenedAt), took(r), beginner(r), headline(at, r))
	}
	t.print(to)
}

// releaseName is the name of the release that a run installs; empty for none.
func releaseName(r v1.Run) string {
	if r.Release == nil {
		return ""
	}
	return r.Release.Name
}

func took(r v1.Run) string {
	if r.EndedAt == nil {
		return "-"
	}
	return window.FormatDuration(r.EndedAt.Sub(r.OpenedAt))
}

// showStory prints what happened, oldest first.
func showStory(to *terminal, at timeFormat, events []v1.RunEvent) {
	if len(events) == 0 {
		return
	}
	to.line("")
	var t table
	t.add("AT", "EVENT")
	for _, e := range events {
		t.add(at.at(e.At), storyLine(at, e))
	}
	t.print(to)
}

// storyLine says in a line what happened: a person's reason comes after a
// colon.
func storyLine(at timeFormat, e v1.RunEvent) string {
	line := e.Event
	if e.Host != "" {
		line += " " + e.Host
	}
	if e.By != "" {
		line += " by " + e.By
	}
	switch {
	case e.Text == "":
		return line
	case e.Event == finished && strings.HasPrefix(e.Text, abortedBy):
		// Who aborted it, and why, stands where it was.
		return line + " aborted"
	case e.Event == finished:
		result, why, _ := strings.Cut(e.Text, ": ")
		return line + " " + strings.TrimSuffix(result+": "+at.text(why), ": ")
	case e.Event == passedOver:
		return line + " " + at.text(e.Text)
	case e.By == "":
		return line + " " + e.Text
	case e.Event == opened, e.Event == approved:
		// The text begins with how it was opened, or what was approved.
		return line + ", " + e.Text
	}
	return line + ": " + e.Text
}

// The events that are told in words of their own, by their names.
var opened, approved, passedOver, finished = message.Name(message.Opened{}), message.Name(message.Approved{}), message.Name(message.Busy{}), message.Name(message.Finished{})

// abortedBy is how the text of the end of a run begins that was aborted.
const abortedBy = "aborted: aborted by "
