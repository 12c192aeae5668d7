package cli

import (
	"context"
	"io"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// rollbackCommand rolls back a run.
type rollbackCommand struct {
	operator
	environmentFlag
	ID       runID  `arg:"" optional:"" help:"Id of the run to roll back (default: the newest run of the environment that upgraded a host)." complete:"runs"`
	Reason   string `help:"Why; it is stored with the run."`
	Duration string `help:"How long the rollback may take, such as 2h (default: 4h)."`
	Wait     bool   `help:"Follow the rollback until it ends; exit code 3 if it did not complete."`
	DryRun   bool   `help:"Start nothing; show which hosts would go back in which order, and which would not. Exit code 1 if the rollback would be refused."`
}

// Help is the longer text of --help.
func (c *rollbackCommand) Help() string {
	return "A rollback is a run in reverse: the stages of the run come in reverse order, each step is its undo, and each host goes back to what it had before. " +
		"The runs that belong to it are rolled back, too: those that it went on from, and those before it to the same release. " +
		"All hosts are prepared first. If too few of them can go back, nothing is touched. " +
		"A host that a later run has upgraded stays as it is. " +
		"A rollback that ended before it was complete goes on if you type the command again. It waits for no window, but not even a rollback starts in a freeze. " +
		"Once the point of no return of the rollout has begun, there is no way back."
}

// Run implements the command.
func (c *rollbackCommand) Run(ctx context.Context, out io.Writer) error {
	body := v1.Start{Environment: c.Environment, Rollback: c.ID == 0, RollbackOf: uint64(c.ID), Reason: c.Reason, Duration: c.Duration}
	switch {
	case c.DryRun && c.Wait:
		return misusedf("--wait has nothing to wait for with --dry-run; leave one of them out")
	case c.DryRun && body.Reason == "":
		body.Reason = "dry run"
	case body.Reason == "":
		return misusedf("a rollback needs a --reason, which is stored with the run")
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

// rollbackOf names the runs that a run rolls back; empty if it rolls none back.
func rollbackOf(r v1.Run) string {
	if r.RollbackOf == 0 {
		return ""
	}
	return message.Opened{RollbackOf: r.RollbackOf, RollbackSince: r.RollbackSince}.RollsBack().Runs()
}
