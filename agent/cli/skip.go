package cli

import (
	"cmp"
	"context"
	"io"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// skipping is the common part of the commands about skipped windows.
type skipping struct {
	operator
	Environment string `help:"Environment of the window; without it, the environment default." placeholder:"NAME" complete:"environments"`
	WindowStart string `help:"When the window opens, such as 2026-11-29T01:00:00Z (default: the next one)." placeholder:"TIME"`
}

// skipWindowCommand skips a window.
type skipWindowCommand struct {
	skipping
	Reason string `help:"Why; it is shown with the window." required:""`
}

// Help is the longer text of --help.
func (c *skipWindowCommand) Help() string {
	return "A skipped window opens no run by itself and does not count as missed. If an edit moves the window, it is no longer skipped. " +
		"A start by hand is not affected. To undo it before the window closes, use unskip-window."
}

// Run implements the command.
func (c *skipWindowCommand) Run(ctx context.Context, out io.Writer) error {
	body := v1.SkipWindow{Environment: c.Environment, WindowStart: c.WindowStart, Reason: c.Reason}
	if err := wrongFlags(body.Validate()); err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	skipped, err := api.SkipWindow(ctx, c.Tenant, body)
	if err != nil {
		return c.format().refusal(err)
	}
	at := c.format()
	return c.Output.say(out, skipped, "The window of environment %s from %s to %s is skipped by %s: %s", cmp.Or(c.Environment, v1.DefaultEnvironment), at.at(skipped.Start), at.at(skipped.End), skipped.By, skipped.Reason)
}

// unskipWindowCommand lets a skipped window open its run.
type unskipWindowCommand struct{ skipping }

// Help is the longer text of --help.
func (c *unskipWindowCommand) Help() string {
	return "If the window is open already, its run begins now."
}

// Run implements the command.
func (c *unskipWindowCommand) Run(ctx context.Context, out io.Writer) error {
	body := v1.SkipWindow{Environment: c.Environment, WindowStart: c.WindowStart, Reason: "-"}
	if err := wrongFlags(body.Validate()); err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	var start time.Time
	if start, err = body.Start(); err != nil {
		return err
	}
	if err := api.UnskipWindow(ctx, c.Tenant, c.Environment, start); err != nil {
		return c.format().refusal(err)
	}
	return c.Output.say(out, struct{}{}, "The window is not skipped any more.")
}
