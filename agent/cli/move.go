package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// moveCommand moves a host into an environment.
type moveCommand struct {
	operator
	Host        string `arg:"" help:"Name of the host, as hosts shows it." complete:"hosts"`
	Environment string `help:"The environment whose runs upgrade the host from now on, whatever matches it; default has the hosts that are in no other." placeholder:"NAME" complete:"environments"`
	Auto        bool   `help:"Undo a move: the host goes to the environment that matches it, or else to default."`
}

// Validate implements kong's hook.
func (c *moveCommand) Validate() error {
	switch {
	case c.Auto && c.Environment != "":
		return errors.New("--auto undoes a move; leave out --environment, or --auto")
	case !c.Auto && c.Environment == "":
		return errors.New("name the --environment to which the host moves, or undo an earlier move with --auto")
	}
	return c.operator.Validate()
}

// Run implements the command.
func (c *moveCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	moved, err := api.MoveHost(ctx, c.Tenant, c.Host, c.Environment)
	if err != nil {
		return err
	}
	return c.Output.say(out, moved, "%s", movedSentence(moved))
}

// movedSentence says where a host is now, and when that counts.
func movedSentence(m v1.HostEnvironment) string {
	var sentence string
	switch {
	case m.Unplaced:
		return fmt.Sprintf("Host %s is in no environment, because several match it: no run upgrades it.", m.Hostname)
	case m.Assigned:
		sentence = fmt.Sprintf("Host %s is assigned to environment %s.", m.Hostname, m.Environment)
	default:
		sentence = fmt.Sprintf("Host %s is in environment %s, by what matches it.", m.Hostname, m.Environment)
	}
	if m.Run != 0 {
		sentence += fmt.Sprintf(" Run %d of %s still has it, so it moves when that run has ended.", m.Run, m.RunEnvironment)
	}
	return sentence
}
