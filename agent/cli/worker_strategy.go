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

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/scope"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/exec"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/ostree"
)

// strategyOptions are the flags of the worker that belong to one strategy, each under
// the prefix of its name, such as apt-removals. They reach the process that carries out a
// action as JSON.
type strategyOptions struct {
	// State is the folder of --state; a strategy keeps what it must in a folder of its
	// name there.
	State string `kong:"-" json:"state,omitempty"`

	Apt  aptOptions  `embed:"" prefix:"apt-" json:"apt"`
	DNF  dnfOptions  `embed:"" prefix:"dnf-" json:"dnf"`
	RAUC raucOptions `embed:"" prefix:"rauc-" json:"rauc"`
}

// native is a strategy of this program.
type native struct {
	open func(o strategyOptions) (strategy.Strategy, error)
	// signs are the files that a host has that is upgraded this way, or patterns of them; one
	// suffices.
	signs []string
	// also is a file that it must have besides; unless are files that it must not have.
	also   string
	unless []string
	// image is set when it replaces the system as a whole. Such a system often has a
	// package database, too, so it is looked for first.
	image bool
}

// natives are the strategies of this program by name. A new one is a line here, and its
// options, if it has any, a member of strategyOptions.
var natives = map[string]native{
	"apt":  {open: openApt, signs: []string{"/var/lib/dpkg/status"}},
	"dnf":  {open: openDNF, signs: []string{"/etc/dnf/dnf.conf"}},
	"rauc": {open: openRAUC, signs: []string{"/etc/rauc/system.conf", "/usr/lib/rauc/system.conf"}, image: true},
	// A system that OSTree has started may be managed by another program.
	"ostree":     {open: openOSTree(ostree.OSTree), signs: []string{ostreeBooted}, unless: []string{"/usr/bin/rpm-ostree", "/usr/bin/bootc"}, image: true},
	"rpm-ostree": {open: openOSTree(ostree.RPMOSTree), signs: []string{"/usr/bin/rpm-ostree"}, also: ostreeBooted, image: true},
	"bootc":      {open: openOSTree(ostree.Bootc), signs: []string{"/usr/bin/bootc"}, also: ostreeBooted, image: true},
	// Before systemd 257 a transfer file ended with .conf; the strategy needs 257.
	"sysupdate": {open: openSysupdate, signs: []string{"/etc/sysupdate.d/*.transfer", "/usr/lib/sysupdate.d/*.transfer"}, image: true},
}

const (
	// byScripts is the strategy that runs a folder of scripts.
	byScripts = "exec"
	// detected is the value of --strategy that goes by what the host has.
	detected = "auto"
)

// strategyNames are the names of all strategies.
func strategyNames() []string {
	return append([]string{byScripts}, slices.Sorted(maps.Keys(natives))...)
}

// openNative makes a strategy of this program.
func openNative(name string, o strategyOptions) (strategy.Strategy, error) {
	native, ok := natives[name]
	if !ok {
		return nil, fmt.Errorf("%.50q is not a strategy; use one of %s", name, strings.Join(strategyNames(), ", "))
	}
	return native.open(o)
}

// sign returns the file by which a host shows that it is upgraded this way, or "".
func (n native) sign(exists func(path string) bool) string {
	i := slices.IndexFunc(n.signs, exists)
	if i < 0 || n.also != "" && !exists(n.also) || slices.ContainsFunc(n.unless, exists) {
		return ""
	}
	return n.signs[i]
}

// detectStrategy returns the strategy of a host and why it is this one. Scripts that are
// given decide; then systems that are replaced as a whole, and then packages.
func detectStrategy(scripts string, exists func(path string) bool) (name, why string, err error) {
	if scripts != "" {
		return byScripts, "scripts is " + scripts, nil
	}
	var looked []string
	for _, image := range []bool{true, false} {
		var names, reasons []string
		for _, name := range slices.Sorted(maps.Keys(natives)) {
			if natives[name].image != image {
				continue
			}
			looked = append(looked, fmt.Sprintf("%s (%s)", strings.Join(natives[name].signs, " or "), name))
			if sign := natives[name].sign(exists); sign != "" {
				names, reasons = append(names, name), append(reasons, sign+" exists")
			}
		}
		switch {
		case len(names) == 1:
			return names[0], reasons[0], nil
		case len(names) > 1:
			return "", "", fmt.Errorf("strategy: this host may be upgraded by %s (%s); name the one to use", strings.Join(names, " or by "), strings.Join(reasons, ", "))
		}
	}
	return "", "", fmt.Errorf("strategy: cannot tell how this host is upgraded: it has none of %s; name the folder of scripts that upgrade it, or the strategy", strings.Join(looked, ", "))
}

// checkStrategy checks the flags that say how this host is upgraded.
func (c *workerCommand) checkStrategy() (err error) {
	if err := variablesOfReleases(); err != nil {
		return err
	}
	if c.Strategy == detected {
		exists := func(path string) bool { found, _ := filepath.Glob(path); return len(found) > 0 } // The patterns are right.
		if c.Strategy, c.strategyWhy, err = detectStrategy(c.Scripts, exists); err != nil {
			return err
		}
	}
	switch {
	case !slices.Contains(strategyNames(), c.Strategy):
		return fmt.Errorf("strategy: %.50q is not a strategy; use %s, or one of %s", c.Strategy, detected, strings.Join(strategyNames(), ", "))
	case c.Strategy == byScripts && c.Scripts == "":
		return fmt.Errorf("scripts: it is required for strategy exec; name the folder of the scripts")
	case c.Strategy != byScripts && c.Scripts != "":
		return fmt.Errorf("scripts: strategy %s has no scripts; leave it out, or use strategy exec", c.Strategy)
	}
	if native, ok := natives[c.Strategy]; ok {
		// Wrong options are told before the worker does anything.
		c.Options.State = c.State
		_, err = native.open(c.Options)
	}
	return err
}

// openStrategy makes the strategy of the worker. Each of its actions is a process of its
// own, so that it outlives the worker: a script, or this program.
func (c *workerCommand) openStrategy() (*exec.Strategy, error) {
	o := exec.Options{
		Dir: c.Scripts, StateDir: filepath.Join(c.State, "exec"), Timeouts: exec.WithLimit(time.Duration(c.ActionLimit)),
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
	if r, ok := s.(strategy.Releaser); ok {
		o.Releases = r.Releases()
	}
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
