package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// asking is what the commands that ask something of the run under way share.
type asking struct {
	operator
	Reason string `help:"Why; it is kept with the run." required:""`
}

// do asks, and says what came of it.
func (c *asking) do(out io.Writer, ask func(*client.Client) (v1.Run, error), done string) error {
	if strings.TrimSpace(c.Reason) == "" {
		return errors.New("--reason is empty; say why, it is kept with the run")
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	run, err := ask(api)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return c.json(out, run)
	}
	_, err = fmt.Fprintf(out, "Run %d %s.\n", run.ID, done)
	return err
}

// pauseCommand holds the run under way up.
type pauseCommand struct {
	asking
}

// Run implements the command.
func (c *pauseCommand) Run(ctx context.Context, out io.Writer) error {
	return c.do(out, func(api *client.Client) (v1.Run, error) {
		return api.Pause(ctx, c.Tenant, v1.Ask{Reason: c.Reason})
	}, "is paused: hosts under way are finished, no other one starts until it is resumed")
}

// resumeCommand lets it go on.
type resumeCommand struct {
	asking
}

// Run implements the command.
func (c *resumeCommand) Run(ctx context.Context, out io.Writer) error {
	return c.do(out, func(api *client.Client) (v1.Run, error) {
		return api.Resume(ctx, c.Tenant, v1.Ask{Reason: c.Reason})
	}, "goes on; the failures so far are forgiven")
}

// abortCommand ends it.
type abortCommand struct {
	asking
}

// Run implements the command.
func (c *abortCommand) Run(ctx context.Context, out io.Writer) error {
	return c.do(out, func(api *client.Client) (v1.Run, error) {
		return api.Abort(ctx, c.Tenant, v1.Ask{Reason: c.Reason})
	}, "is aborted: no command is sent any more, and it ends once the hosts under way have answered or are given up")
}

// approveCommand lets a stage begin.
type approveCommand struct {
	asking
	Stage string `arg:"" help:"Name of the stage."`
}

// Run implements the command.
func (c *approveCommand) Run(ctx context.Context, out io.Writer) error {
	return c.do(out, func(api *client.Client) (v1.Run, error) {
		return api.Approve(ctx, c.Tenant, v1.Ask{Reason: c.Reason, Stage: c.Stage})
	}, "may begin stage "+c.Stage)
}

// releaseCommand frees a slot by force.
type releaseCommand struct {
	asking
	Host string `arg:"" help:"Name of the host that holds the slot, as status shows it."`
}

// Help is the longer text of --help.
func (c *releaseCommand) Help() string {
	return "A host that is silent or not well counts as out of service, and holds up others, until it recovers. " +
		"Release it only when you know that it may be left as it is: the next host goes down in its place."
}

// Run implements the command.
func (c *releaseCommand) Run(ctx context.Context, out io.Writer) error {
	return c.do(out, func(api *client.Client) (v1.Run, error) {
		return api.Release(ctx, c.Tenant, v1.Ask{Reason: c.Reason, Host: c.Host})
	}, "goes on without "+c.Host+", which is left as it is")
}
