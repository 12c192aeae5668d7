package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/scope"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy/exec"
)

// strategyOptions are the flags of the worker that belong to one strategy, each under
// the prefix of its name, such as apt-mode. They reach the process that carries out a
// step as JSON.
type strategyOptions struct{}

// native is a strategy of this program.
type native func(o strategyOptions) (strategy.Strategy, error)

// natives are the strategies of this program by name. A new one is a line here, and its
// options a member of strategyOptions.
var natives = map[string]native{}

// byScripts is the strategy that runs a folder of scripts.
const byScripts = "exec"

// strategyNames are the values of --strategy.
func strategyNames() []string {
	return append([]string{byScripts}, slices.Sorted(maps.Keys(natives))...)
}

// openNative makes a strategy of this program.
func openNative(name string, o strategyOptions) (strategy.Strategy, error) {
	open, ok := natives[name]
	if !ok {
		return nil, fmt.Errorf("%.50q is not a strategy; use one of %s", name, strings.Join(strategyNames(), ", "))
	}
	return open(o)
}

// checkStrategy checks the flags that say how this host is upgraded.
func (c *workerCommand) checkStrategy() error {
	switch {
	case !slices.Contains(strategyNames(), c.Strategy):
		return fmt.Errorf("strategy: %.50q is not a strategy; use one of %s", c.Strategy, strings.Join(strategyNames(), ", "))
	case c.Strategy == byScripts && c.Scripts == "":
		return fmt.Errorf("scripts: it is required for strategy exec; name the folder of the scripts")
	case c.Strategy != byScripts && c.Scripts != "":
		return fmt.Errorf("scripts: strategy %s has no scripts; leave it out, or use strategy exec", c.Strategy)
	}
	return nil
}

// openStrategy makes the strategy of the worker. Each of its actions is a process of its
// own, so that it outlives the worker: a script, or this program.
func (c *workerCommand) openStrategy() (*exec.Strategy, error) {
	o := exec.Options{
		Dir: c.Scripts, StateDir: filepath.Join(c.State, "exec"), Timeouts: exec.WithStep(time.Duration(c.StepLimit)),
		VersionPaths: c.WatchVersions,
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	if scope.Available() {
		o.Wrap = []string{self, "scoped"}
	}
	if c.Strategy == byScripts {
		return exec.New(o)
	}
	s, err := openNative(c.Strategy, c.Options)
	if err != nil {
		return nil, err
	}
	if o.Options, err = json.Marshal(c.Options); err != nil {
		return nil, err
	}
	o.Program, o.Fits = []string{self, "strategy", c.Strategy}, s.Detect
	if w, ok := s.(strategy.Watcher); ok && len(o.VersionPaths) == 0 {
		o.VersionPaths = w.VersionPaths()
	}
	return exec.New(o)
}

// strategyCommand carries out one action of a strategy of this program: the worker starts
// it, as it starts a script.
type strategyCommand struct {
	Name   string `arg:"" help:"Strategy."`
	Action string `arg:"" help:"Action, such as upgrade."`
}

// exitStatus ends the program with a status that has told its reason.
type exitStatus int

// Error implements error.
func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Run implements the command.
func (c *strategyCommand) Run(ctx context.Context, std exec.Streams) error {
	status := exec.Serve(ctx, c.Action, func(options json.RawMessage) (strategy.Strategy, error) {
		var o strategyOptions
		if len(options) > 0 {
			if err := json.Unmarshal(options, &o); err != nil {
				return nil, fmt.Errorf("cannot read the options of %s: %w", c.Name, err)
			}
		}
		return openNative(c.Name, o)
	}, std)
	if status != 0 {
		return exitStatus(status)
	}
	return nil
}

// scopedCommand becomes another program, in a scope of systemd of its own: a stop of the
// worker's service, as by an upgrade of the agent, does not end it.
type scopedCommand struct {
	Command []string `arg:"" passthrough:"" help:"Program and its arguments."`
}

// Run implements the command. Without a scope the program runs all the same: it is
// resumed if it is ended.
func (c *scopedCommand) Run(ctx context.Context, std exec.Streams) error {
	path, err := osexec.LookPath(c.Command[0])
	if err != nil {
		return err
	}
	if err := scope.Enter(ctx, "OS upgrade: "+filepath.Base(path)+" "+strings.Join(c.Command[1:], " ")); err != nil {
		_, _ = fmt.Fprintln(std.Err, "no scope of its own, so a stop of the worker's service may end it:", err)
	}
	return fmt.Errorf("cannot become %s: %w", path, syscall.Exec(path, c.Command, os.Environ()))
}
