// Package ostree is the strategy for systems that OSTree deploys: each version of the
// system is a commit, each deployment of one can be started, and an upgrade deploys a
// commit beside the one that runs. It has three tools: ostree itself, and rpm-ostree and
// bootc, which manage OSTree's deployments in their own way.
//
// The version of a system is the one that its builder gave it and the beginning of its
// commit's checksum (or image's digest), such as "40.1 (f1a2b3c4d5e6)".
//
// What decides is pure: the reading of what the tools print (status.go, rpmostree.go,
// bootc.go), what a plan has come to, the way back, and the class of a failure
// (failure.go). The package believes no exit status where it can look at the
// deployments. It keeps nothing.
package ostree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/osinfo"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
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
	// Ref is the branch to follow, REMOTE:BRANCH; if it is empty, the one that the
	// system that runs follows. Only OSTree takes one.
	Ref string
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

// manager is what the tools differ in.
type manager interface {
	// look returns the deployments.
	look(ctx context.Context) (deployments, error)
	// known returns the version that would be deployed by what the host knows now, and
	// whether it knows any.
	known(ctx context.Context, now deployments) (version string, ok bool, err error)
	// find asks the remote for the newest version, without its content.
	find(ctx context.Context, now deployments) (version string, err error)
	// fetch brings the content of a version to disk, if the tool can do that before it
	// deploys.
	fetch(ctx context.Context, now deployments, version string) error
	// deploy makes a version the one that starts next.
	deploy(ctx context.Context, now deployments, version string) error
	// restore makes an old deployment the one that starts next.
	restore(ctx context.Context, now deployments, old deployment) error
	// discard removes what starts next, so that what runs starts again.
	discard(ctx context.Context, now deployments) error
	// idle waits until the tool does nothing.
	idle(ctx context.Context, tell func(int, string)) error
}

// Strategy upgrades a host by deployments.
type Strategy struct {
	o    Options
	tool manager
}

var (
	_ strategy.Strategy  = (*Strategy)(nil)
	_ strategy.Confirmer = (*Strategy)(nil)
	_ strategy.Watcher   = (*Strategy)(nil)
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
	s := &Strategy{o: o}
	var err error
	switch o.Tool {
	case OSTree:
		s.tool, err = plain{o}, o.checkRef()
	case RPMOSTree:
		s.tool, err = newRPMOSTree(o)
	case Bootc:
		s.tool, err = newBootc(o)
	default:
		err = fmt.Errorf("%.50q is not a tool; use %s, %s or %s", o.Tool, OSTree, RPMOSTree, Bootc)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the %s strategy: %w", o.Tool, err)
	}
	return s, nil
}

// checkRef checks the branch to follow.
func (o Options) checkRef() error {
	if o.Ref == "" {
		return nil
	}
	if _, _, err := branch(o.Ref); err != nil {
		return fmt.Errorf("ostree-ref: %w", err)
	}
	return nil
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
		return fmt.Errorf("cannot upgrade by %s: this host was not started by OSTree: /run/ostree-booted is not there", s.o.Tool)
	}
	now, err := s.tool.look(ctx)
	if err == nil {
		_, err = now.running()
	}
	if err != nil {
		return fmt.Errorf("cannot upgrade by %s: %w", s.o.Tool, err)
	}
	return nil
}

// Versions returns the version that runs, the one that starts next if that is another,
// and the release.
func (s *Strategy) Versions(ctx context.Context) (map[string]string, error) {
	versions, err := osinfo.Read(s.o.root)
	if err != nil {
		return nil, err
	}
	now, err := s.tool.look(ctx)
	if err != nil {
		return nil, err
	}
	systems, err := now.versions()
	maps.Copy(versions, systems)
	return versions, err
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

// why is why an upgrade takes a reboot.
const why = "the new deployment starts with the machine"

// Plan returns what an upgrade changes by what the host has seen of its branch.
func (s *Strategy) Plan(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	now, systems, err := s.look(ctx)
	if err != nil {
		return message.ChangeSet{}, err
	}
	version, ok, err := s.tool.known(ctx, now)
	if err != nil {
		return message.ChangeSet{}, err
	}
	if !ok {
		return message.ChangeSet{}, fmt.Errorf("%w: the host has not asked its remote yet", strategy.ErrNoPlan)
	}
	return systems.Plan(version, 0, why, job.Rejected), nil
}

func (s *Strategy) look(ctx context.Context) (deployments, strategy.Systems, error) {
	now, err := s.tool.look(ctx)
	if err != nil {
		return nil, strategy.Systems{}, err
	}
	systems, err := now.systems()
	return now, systems, err
}

// Prepare fetches the newest version. Nothing of it starts.
func (s *Strategy) Prepare(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	now, systems, err := s.look(ctx)
	if err != nil {
		return message.ChangeSet{}, err
	}
	job.Progress(-1, "asking for the newest version")
	version, err := s.tool.find(ctx, now)
	if err != nil {
		return message.ChangeSet{}, err
	}
	plan := systems.Plan(version, 0, why, job.Rejected)
	if len(plan.Changes) == 0 {
		return plan, nil
	}
	job.Progress(-1, "fetching "+version)
	if err := s.tool.fetch(ctx, now, version); err != nil {
		return message.ChangeSet{}, err
	}
	unix.Sync()
	return plan, nil
}

// Upgrade deploys the version of the plan, unless it is deployed.
func (s *Strategy) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	if len(job.Plan.Changes) == 0 {
		return strategy.Done, nil
	}
	now, systems, err := s.look(ctx)
	if err != nil {
		return 0, err
	}
	if outcome := systems.Outcome(job.Plan); outcome != strategy.NotDone {
		return outcome, nil
	}
	want := job.Plan.Changes[0]
	job.Progress(-1, "deploying "+want.To)
	if err := s.tool.deploy(ctx, now, want.To); err != nil {
		return 0, err
	}
	unix.Sync()
	if _, systems, err = s.look(ctx); err != nil {
		return 0, err
	}
	if outcome := systems.Outcome(job.Plan); outcome != strategy.NotDone {
		return outcome, nil
	}
	err = strategy.Fail(message.Install, fmt.Errorf("%s has deployed %s without an error, and yet %s would not start next but %s; ostree admin status shows the deployments", s.o.Tool, want.Name, want.To, cmp.Or(systems.Next, "what runs")))
	if systems.Next == "" {
		return 0, err
	}
	// Nobody has planned what would start.
	now, lookErr := s.tool.look(ctx)
	if lookErr != nil {
		return 0, errors.Join(err, lookErr)
	}
	return 0, errors.Join(err, s.synced(s.tool.discard(ctx, now)))
}

// Resume compares the deployments with the plan. Deploying is one action for the boot
// loader: what broke off is as if it had not begun.
func (s *Strategy) Resume(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	if len(job.Plan.Changes) == 0 {
		return strategy.Done, nil
	}
	if err := s.tool.idle(ctx, job.Progress); err != nil {
		return 0, err
	}
	_, systems, err := s.look(ctx)
	if err != nil {
		return 0, err
	}
	return systems.Resumed(job.Plan)
}

// Missing returns the change of the plan if its version does not run. Before the
// reboot it is enough that it starts next.
func (s *Strategy) Missing(ctx context.Context, job strategy.Job) ([]message.Change, error) {
	if len(job.Plan.Changes) == 0 {
		return nil, nil
	}
	_, systems, err := s.look(ctx)
	return systems.Missing(job), err
}

// Verify checks that the version of the plan runs.
func (s *Strategy) Verify(ctx context.Context, job strategy.Job) error {
	_, systems, err := s.look(ctx)
	if err != nil {
		return err
	}
	return systems.Verify(job.Plan)
}

// Rollback has the deployment from before start next.
func (s *Strategy) Rollback(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	now, err := s.tool.look(ctx)
	if err != nil {
		return 0, err
	}
	do, old, err := now.back(job.Plan)
	if err != nil {
		return 0, err
	}
	switch do {
	case discard:
		return strategy.Done, s.synced(s.tool.discard(ctx, now))
	case restore:
		return strategy.RebootRequired, s.synced(s.tool.restore(ctx, now, old))
	case underWay:
		return strategy.RebootRequired, nil
	default:
		return strategy.Done, nil
	}
}

func (s *Strategy) synced(err error) error {
	unix.Sync()
	return err
}

// Booted tells which deployment has started, and which the machine gave up.
func (s *Strategy) Booted(ctx context.Context) (strategy.Boot, error) {
	_, systems, err := s.look(ctx)
	return systems.Boot(), err
}

// Confirm removes a failed deployment from its place as the one that starts first. One
// that runs needs no mark.
func (s *Strategy) Confirm(ctx context.Context, boot strategy.Boot) error {
	if boot.Failed == "" {
		return nil
	}
	now, systems, err := s.look(ctx)
	if err != nil || systems.Failed != boot.Failed {
		return err
	}
	return s.synced(s.tool.discard(ctx, now))
}
