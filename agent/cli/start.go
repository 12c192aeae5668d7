package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// startCommand starts a run by hand.
type startCommand struct {
	starting
	Until string `placeholder:"STAGE" complete:"stages" help:"End the run after this stage. The next run goes on there: hosts that are upgraded are left out, steps that are done stay done."`
}

// Help is the longer text of --help.
func (c *startCommand) Help() string {
	return "Without --host, --label and --role, the run has all hosts of its environment. With them, the site chooses the hosts when the run starts. " +
		"A run has hosts of one environment: without --environment, of the only one that has such hosts. " +
		"If a window is open, the run is the run of this window: no other starts in it. " +
		"Runs go on where earlier ones ended as long as no stage of the rollout is added, removed, renamed or moved, and until a run has passed the last stage."
}

// Run implements the command.
func (c *startCommand) Run(ctx context.Context, out io.Writer) error {
	return c.start(ctx, out, v1.Start{Until: c.Until})
}

// starting is the common part of the commands that start a run.
type starting struct {
	operator
	matchFlags
	environmentFlag
	Release        string `placeholder:"NAME" complete:"releases" help:"Release to install (default: that of the environment; a retry has that of its run, or none if that had none)."`
	OverrideWindow bool   `help:"Start even if no window is open; needs --reason."`
	OverrideAfter  string `placeholder:"REASON" help:"Start even if an environment that comes before this one has not completed a run, or that run has not soaked; the reason is stored with the run."`
	Reason         string `help:"Why; it is stored with the run."`
	Duration       string `help:"How long a run with --override-window may take, such as 2h (default: until the open window closes, or 4h if none is open)."`
	Wait           bool   `help:"Follow the run until it ends; exit code 3 if it did not complete."`
	DryRun         bool   `help:"Start nothing; show which hosts would be upgraded in which order, what would change on them, what is missing, and whether the time suffices. Exit code 1 if the start would be refused."`
}

// start starts a run, or shows what it would be.
func (c *starting) start(ctx context.Context, out io.Writer, body v1.Start) error {
	selector, err := c.selector()
	if err != nil {
		return err
	}
	body.Environment, body.Hosts, body.Labels, body.Roles = c.Environment, selector.Hosts, selector.Labels, selector.Roles
	body.Release = c.Release
	body.OverrideWindow, body.OverrideAfter, body.Reason, body.Duration = c.OverrideWindow, c.OverrideAfter, c.Reason, c.Duration
	switch {
	case c.DryRun && c.Wait:
		return misusedf("--wait has nothing to wait for with --dry-run; leave one of them out")
	case c.OverrideWindow && strings.TrimSpace(c.Reason) == "":
		return misusedf("--override-window needs a --reason, which is stored with the run")
	case c.Duration != "" && !c.OverrideWindow:
		return misusedf("--duration is for runs outside of the windows; add --override-window, or leave it out")
	}
	if err := wrongFlags(body.Validate()); err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.rehearse(ctx, out, api, body)
	}
	return c.begin(ctx, out, api, body, c.Wait)
}

// begin starts a run, and follows it or says that it has begun.
func (c *operator) begin(ctx context.Context, out io.Writer, api *client.Client, body v1.Start, waits bool) error {
	run, err := api.Start(ctx, c.Tenant, body)
	if err != nil {
		return c.format().refusal(err)
	}
	if waits {
		p := newProgress(out, c, run.ID)
		return p.watch(ctx, api)
	}
	if run.Finished() && run.Result != "completed" { // Its start checks failed.
		return cmp.Or(c.Output.show(out, run, func(to *terminal) error {
			to.linef("Run %d%s has ended, %s: %s.", run.ID, ofEnvironment(run), run.Result, c.format().text(run.Reason))
			return nil
		}), errNotCompleted)
	}
	return c.Output.show(out, run, func(to *terminal) error {
		at := c.format()
		hosts := text.Count(memberCount(run), "host", "hosts")
		if selector := body.Selector(); !selector.IsZero() {
			hosts += fmt.Sprintf(" (%s)", selector)
		}
		if run.Release != nil {
			hosts += ", to release " + run.Release.Name
		}
		if back := rollbackOf(run); back != "" {
			hosts += ", the rollback of " + back
		}
		if run.Until != "" {
			hosts += ", until stage " + run.Until
		}
		limits := "no host starts after " + at.at(run.NotAfter)
		if run.EndsBy != nil {
			limits += ", and it ends by " + at.at(*run.EndsBy)
		}
		to.linef("Run %d%s has begun with %s; %s.", run.ID, ofEnvironment(run), hosts, limits)
		return nil
	})
}

// retryCommand starts a run of the hosts that an earlier run did not upgrade.
type retryCommand struct {
	starting
	ID runID `arg:"" help:"Id of the run to retry." complete:"runs"`
}

// Help is the longer text of --help.
func (c *retryCommand) Help() string {
	return "The new run has only the hosts that the earlier run did not upgrade, and the steps that failed while it went on without them. " +
		"--host, --label and --role choose among these hosts; the run then takes no step. " +
		"A rollback is not retried: type rollback again, and it goes on."
}

// Run implements the command.
func (c *retryCommand) Run(ctx context.Context, out io.Writer) error {
	return c.start(ctx, out, v1.Start{RetryOf: uint64(c.ID)})
}
