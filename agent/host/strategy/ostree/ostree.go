// Package ostree drives systems that OSTree deploys, for the strategy of package image: each version of the
// system is a commit, each deployment of one can be started, and an upgrade deploys a
// commit beside the one that runs. It has three tools: ostree itself, and rpm-ostree and
// bootc, which manage OSTree's deployments in their own way.
//
// The version of a system is the one that its builder gave it and the beginning of its
// commit's checksum (or image's digest), such as "40.1 (f1a2b3c4d5e6)".
//
// What decides is pure: the reading of what the tools print (status.go, rpmostree.go,
// bootc.go) and the class of a failure (failure.go). The package keeps nothing.
package ostree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/osinfo"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/image"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Tool is the program that manages the deployments.
type Tool string

// The tools.
const (
	OSTree    Tool = "ostree"
	RPMOSTree Tool = "rpm-ostree"
	Bootc     Tool = "bootc"
)

// Options configure the strategy.
type Options struct {
	// Tool is OSTree by default.
	Tool Tool
	// StateDir is a folder of the strategy.
	StateDir string
	// Output gets what the tool prints; nil discards it.
	Output io.Writer

	// root is the root folder of the host; "/" if it is empty.
	root string
	// run runs a program of the host; [Options.execute] if nil.
	run runner
}

// runner runs a program and returns its standard output.
type runner func(ctx context.Context, name string, args ...string) (string, error)

// Strategy upgrades a host by deployments.
type Strategy struct {
	image.Strategy[deployments]
	o Options
}

var (
	_ strategy.Strategy         = (*Strategy)(nil)
	_ strategy.Confirmer        = (*Strategy)(nil)
	_ strategy.Watcher          = (*Strategy)(nil)
	_ strategy.Releaser         = (*Strategy)(nil)
	_ strategy.RollbackPreparer = (*Strategy)(nil)
)

// New checks the options.
func New(o Options) (*Strategy, error) {
	if o.Tool == "" {
		o.Tool = OSTree
	}
	if o.root == "" {
		o.root = "/"
	}
	if o.Output == nil {
		o.Output = io.Discard
	}
	if o.run == nil {
		o.run = o.execute
	}
	var tool image.Driver[deployments]
	switch o.Tool {
	case OSTree:
		tool = plain{o}
	case RPMOSTree:
		tool = rpmOSTree{plain{o}}
	case Bootc:
		tool = bootc{plain{o}}
	default:
		return nil, fmt.Errorf("%.50q is not a tool; use %s, %s or %s", o.Tool, OSTree, RPMOSTree, Bootc)
	}
	return &Strategy{image.Strategy[deployments]{
		Driver: tool, Tool: string(o.Tool), Root: o.root,
		Reboot: "the new deployment starts with the machine", Shows: "ostree admin status shows the deployments",
	}, o}, nil
}

// execute runs a program of this host. What it prints is shown, and its last line of
// standard error is in the error.
func (o Options) execute(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&said, o.Output)
	if err := cmd.Run(); err != nil {
		return out.String(), explain(ctx, name, args, said.String()+out.String(), err)
	}
	return out.String(), nil
}

// explain returns the error of a program: what it said, or else how it ended.
func explain(ctx context.Context, name string, args []string, said string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s was ended: %w", name, ctx.Err())
	}
	lines := strings.Fields(name)
	for line := range strings.Lines(said) {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	last := message.CleanText(text.Fit(strings.TrimPrefix(lines[len(lines)-1], "error: "), message.MaxText/2, "..."))
	if len(lines) == 1 {
		last = err.Error()
	}
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s is not installed: %w", name, err)
	}
	return fmt.Errorf("%s %s: %s", name, verb(args), last)
}

// verb is the part of a command that says what it does.
func verb(args []string) string {
	i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") })
	if i < 0 {
		i = len(args)
	}
	return strings.Join(args[:min(i, 2)], " ")
}

// Detect checks that the system that runs is one of OSTree's.
func (s *Strategy) Detect(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.o.root, "run/ostree-booted")); err != nil {
		return fmt.Errorf("cannot upgrade by %s: this host was not started by OSTree: /run/ostree-booted is not there", s.Tool)
	}
	return s.Strategy.Detect(ctx)
}

// VersionPaths implements strategy.Watcher: a deployment, staged or not, is an entry of a
// folder, and which one is the first to boot is a link in /ostree.
func (s *Strategy) VersionPaths() []string {
	paths := osinfo.Paths(s.o.root)
	folders, _ := filepath.Glob(filepath.Join(s.o.root, "ostree/deploy/*/deploy")) // The pattern is right.
	for _, folder := range append(folders, filepath.Join(s.o.root, "ostree")) {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			paths = append(paths, folder)
		}
	}
	return paths
}

// errNotAsked is returned by Known where the host has seen nothing of its remote.
var errNotAsked = fmt.Errorf("%w: the host has not asked its remote yet", strategy.ErrNoPlan)
