package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
)

// withdrawCommand withdraws a release. The word release alone stands for the command that frees the
// slot of a host, so that a release has none of its own.
type withdrawCommand struct {
	siteOperator
	Release string `arg:"" help:"Name of the release." complete:"releases"`
	Reason  string `help:"Why; it is shown with the release." placeholder:"TEXT"`
	Undo    bool   `help:"Let the release be installed again."`
}

// Help is the longer text of --help.
func (c *withdrawCommand) Help() string {
	return "No run is opened with a withdrawn release, and no further environment may name it. A run that installs it asks no further host. The site keeps who withdrew it, and when. " +
		"Only --undo ends the withdrawal: applying a file that does not mention it leaves it as it is."
}

// Validate implements kong's hook.
func (c *withdrawCommand) Validate() error {
	switch {
	case c.Reason == "" && !c.Undo:
		return errors.New("--reason: it is missing; say why the release must not be installed any more")
	case c.Reason != "" && c.Undo:
		return errors.New("--reason: it is given, and so is --undo; give only one of them")
	}
	return nil
}

// Run implements the command.
func (c *withdrawCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	api, err := c.openByToken(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	one := client.ReleaseNamed(c.Release)
	if _, err := one.Get(ctx, api.Client, c.Tenant); client.Missing(err) {
		return fmt.Errorf("nothing was withdrawn: %w", lacks(ctx, api.Client, c.Tenant, intent.Key{Kind: intent.Release, Name: c.Release}))
	}
	if err := api.WithdrawRelease(ctx, c.Tenant, c.Release, c.Reason); err != nil {
		return fmt.Errorf("cannot withdraw release %s: %s", c.Release, explain(err))
	}
	now, err := one.Get(ctx, api.Client, c.Tenant)
	if err != nil {
		return err
	}
	if w := now.Value.Withdrawn; w != nil {
		return c.Output.say(out, now.Value, "Release %s is withdrawn by %s: %s", c.Release, w.By, w.Reason)
	}
	return c.Output.say(out, now.Value, "Release %s may be installed again.", c.Release)
}
