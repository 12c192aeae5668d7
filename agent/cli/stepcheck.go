package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	runner "github.com/osupgrade/terraform-provider-osupgrade/agent/host/check"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/stepcheck"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/check"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// stepCheckCommand plays the scripts of a step.
type stepCheckCommand struct {
	Checks   string            `help:"Folder of the scripts, as --checks of the worker or of the site." required:"" type:"path" placeholder:"DIR"`
	Do       string            `help:"Script that does the step." required:"" placeholder:"SCRIPT"`
	DoArgs   []string          `help:"Argument of --do (repeatable)." name:"do-arg" sep:"none" placeholder:"TEXT"`
	Undo     string            `help:"Script that undoes the step." placeholder:"SCRIPT"`
	UndoArgs []string          `help:"Argument of --undo (repeatable)." name:"undo-arg" sep:"none" placeholder:"TEXT"`
	Gives    []string          `help:"Output that the step gives (repeatable)." sep:"none" placeholder:"NAME"`
	Outputs  map[string]string `help:"Output of an earlier step, passed to the scripts (repeatable)." name:"output" mapsep:"none" placeholder:"NAME=VALUE"`
	Host     string            `help:"Host name to pass to the scripts; without it they run as at the site." placeholder:"NAME"`
	State    string            `help:"Command, run by sh -c, that prints what the step changes. The check compares it before and after." placeholder:"COMMAND"`
	Reset    string            `help:"Command, run by sh -c, that restores the state before the step (default: --undo)." placeholder:"COMMAND"`
	Limit    length            `help:"Longest time that a script may take, such as 10m." default:"10m"`
	Yes      bool              `help:"Confirm that the step may be done and undone here several times, and left half done."`
}

// errStepFailed ends the command after findings that it has printed.
var errStepFailed = errors.New("the step does not pass: fix what is marked FAIL")

// Run implements the command.
func (c *stepCheckCommand) Run(ctx context.Context, out io.Writer) error {
	o, err := c.options()
	if err != nil {
		return misused(err)
	}
	to := newTerminal(out)
	ok, err := stepcheck.Run(ctx, o, func(f check.Finding) { to.linef("%-4s  %s: %s", f.Level, f.What, f.Text) })
	switch {
	case err != nil:
		return err
	case !ok:
		return errors.Join(errStepFailed, to.err)
	}
	to.line("The step passes.")
	return to.err
}

// options reads the flags.
func (c *stepCheckCommand) options() (stepcheck.Options, error) {
	o := stepcheck.Options{
		Runner: &runner.Runner{Scripts: c.Checks, Tenant: "check"},
		Step:   rollout.Step{Do: &rollout.Hook{Type: rollout.Exec, Script: c.Do, Args: c.DoArgs}, Gives: c.Gives},
		Host:   c.Host, Outputs: c.Outputs, State: c.State, Reset: c.Reset, Limit: time.Duration(c.Limit),
	}
	if c.Undo != "" {
		o.Step.Undo = &rollout.Hook{Type: rollout.Exec, Script: c.Undo, Args: c.UndoArgs}
	}
	if info, err := os.Stat(c.Checks); err != nil || !info.IsDir() {
		return o, fmt.Errorf("checks: %q is not a folder; give the folder of the scripts", c.Checks)
	}
	for flag, script := range map[string]string{"do": c.Do, "undo": c.Undo} {
		if script != "" && !rollout.ValidScript(script) {
			return o, fmt.Errorf("%s: %q is not the name of a script; give the name of a file in the folder of --checks", flag, script)
		}
	}
	for _, name := range c.Gives {
		if !rollout.ValidOutput(name) {
			return o, fmt.Errorf(`gives: %q is not the name of an output; use 1 to 63 letters, digits and "_", with no digit at the beginning`, name)
		}
	}
	switch {
	case c.Undo == "" && len(c.UndoArgs) > 0:
		return o, errors.New("undo-arg: give --undo, the script that it is an argument of, too")
	case c.Host != "" && !names.ValidHost(c.Host):
		return o, fmt.Errorf("host: %q is not a host name", c.Host)
	case c.Limit <= 0:
		return o, fmt.Errorf("limit: %s is invalid; use a time above 0s, such as 10m", c.Limit)
	case !c.Yes:
		return o, errors.New("yes: the check really does the step, kills it midway and undoes it; where that may happen, add --yes")
	}
	return o, nil
}
