package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/check"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/exec"
)

// strategyCheckCommand plays a set of scripts, or a strategy of this program, through what
// a worker asks of it.
type strategyCheckCommand struct {
	Scripts  string `help:"Folder of the scripts to check." type:"path" placeholder:"DIR"`
	Strategy string `help:"Built-in strategy to check instead of scripts." placeholder:"NAME"`
	Reset    string `help:"Command, run by sh -c, that restores this machine to its state before the upgrade. With it each action is also killed at its start, midway and at its end." placeholder:"COMMAND"`
	Boot     string `help:"Command, run by sh -c, to use instead of a reboot." placeholder:"COMMAND"`
	Limit    length `help:"Longest time that an action may take, such as 10m." default:"10m"`
	Yes      bool   `help:"Confirm that this machine may be upgraded and broken: the check can do both."`

	Options strategyOptions `embed:""`
}

// errCheckFailed ends the command after findings that it has printed.
var errCheckFailed = errors.New("the strategy does not pass: fix what is marked FAIL")

// Run implements the command.
func (c *strategyCheckCommand) Run(ctx context.Context, out io.Writer) error {
	o, err := c.options()
	if err != nil {
		return misused(err)
	}
	dir, remove, err := check.Scratch()
	if err != nil {
		return err
	}
	o.Strategy.StateDir = dir
	to := newTerminal(out)
	ok, err := check.Run(ctx, o, func(f check.Finding) { to.linef("%-4s  %s: %s", f.Level, f.What, f.Text) })
	switch {
	case err != nil:
		return err
	case !ok:
		to.line("The output of the actions is in " + filepath.Join(dir, "output") + ".")
		return errors.Join(errCheckFailed, to.err)
	}
	to.line("The strategy passes.")
	return errors.Join(to.err, remove())
}

// options reads the flags.
func (c *strategyCheckCommand) options() (check.Options, error) {
	o := check.Options{Strategy: exec.Options{Dir: c.Scripts}, Reset: c.Reset, Boot: c.Boot, Limit: time.Duration(c.Limit)}
	switch {
	case (c.Scripts == "") == (c.Strategy == ""):
		return o, errors.New("scripts: give the folder of the scripts with --scripts, or a built-in strategy with --strategy")
	case c.Limit <= 0:
		return o, fmt.Errorf("limit: %s is invalid; use a time above 0s, such as 10m", c.Limit)
	case !c.Yes:
		return o, errors.New("yes: the check really upgrades this machine, and kills the upgrade midway; on a machine that may break, such as a container, add --yes")
	case c.Strategy == "":
		return o, nil
	}
	s, err := openNative(c.Strategy, c.Options)
	if err != nil {
		return o, err
	}
	self, err := os.Executable()
	if err != nil {
		return o, fmt.Errorf("cannot find this program: %w", err)
	}
	o.Strategy.Program, o.Strategy.Fits = []string{self, "strategy", c.Strategy}, s.Detect
	o.Strategy.Options, err = json.Marshal(c.Options)
	return o, err
}
