package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// startCommand starts a run by hand.
type startCommand struct {
	starting
	Host []string `help:"Host to upgrade, and no other; repeatable. The run counts as that of an open window." placeholder:"NAME"`
}

// Run implements the command.
func (c *startCommand) Run(ctx context.Context, out io.Writer) error {
	return c.start(ctx, out, v1.Start{Hosts: c.Host})
}

// starting is the common part of the commands that start a run.
type starting struct {
	operator
	timeFlags
	OverrideWindow bool   `help:"Start even if no maintenance window is open; needs --reason."`
	Reason         string `help:"Reason; it is stored with the run."`
	Duration       string `help:"How long a run with --override-window may take, such as 2h (default: until the open window closes, else 4h)."`
	Wait           bool   `help:"Follow the run until it ends; exit code 3 when it is not completed."`
	DryRun         bool   `help:"Show what would be started, in which order, what hosts say that it would change, what they lack for it and whether it fits; start nothing. Exit code 1 when the start would be refused."`
}

// start starts a run of the hosts that body chooses, or shows what it would be.
func (c *starting) start(ctx context.Context, out io.Writer, body v1.Start) error {
	body.OverrideWindow, body.Reason, body.Duration = c.OverrideWindow, c.Reason, c.Duration
	switch {
	case c.DryRun && c.Wait:
		return misusedf("--dry-run starts nothing to wait for; leave --wait out")
	case c.OverrideWindow && strings.TrimSpace(c.Reason) == "":
		return misusedf("--override-window needs a --reason, which is stored with the run")
	case c.Duration != "" && !c.OverrideWindow:
		return misusedf("--duration bounds a run outside of the windows; give it with --override-window, or leave it out")
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
	run, err := api.Start(ctx, c.Tenant, body)
	if err != nil {
		return err
	}
	if c.Wait {
		p := newProgress(out, &c.operator, run.ID)
		p.times = c.timeFlags
		return p.watch(ctx, api)
	}
	if c.Output == "json" {
		return c.json(out, run)
	}
	at, err := c.siteFormat(ctx, api, c.Tenant)
	if err != nil { // The run has begun all the same.
		at = c.format("")
	}
	ends := run.NotAfter
	if run.EndsBy != nil {
		ends = *run.EndsBy
	}
	_, err = fmt.Fprintf(out, "Run %d has begun with %s; it ends by %s.\n", run.ID, text.Count(len(run.Hosts), "host", "hosts"), at.at(ends))
	return err
}

// retryCommand starts a run of the hosts that an earlier run did not upgrade.
type retryCommand struct {
	starting
	ID runID `arg:"" help:"Id of the run whose failed and skipped hosts are tried again."`
}

// Run implements the command.
func (c *retryCommand) Run(ctx context.Context, out io.Writer) error {
	return c.start(ctx, out, v1.Start{RetryOf: uint64(c.ID)})
}
