// Package image is the strategy for hosts whose system is replaced as a whole: an upgrade
// puts another system beside the one that runs, and the machine restarts into it. What
// does that on a host, such as RAUC or OSTree, is a Driver of a few calls.
//
// What decides is pure: Systems are the versions of a host, and from them follows what a
// plan has come to and what undoes it. The package believes no exit status: after each
// call it looks at the systems that there are. It keeps nothing.
package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/osinfo"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// State is what a tool says about the systems of its host.
type State interface {
	// Check returns an error for a host that cannot be upgraded this way.
	Check() error
	// Systems returns the versions that decide.
	Systems() (Systems, error)
	// Versions returns what is published.
	Versions() (map[string]string, error)
	// Compatible is the name of this kind of host, by which it gets an image of a release.
	Compatible() string
}

// Offer is a version that can be deployed.
type Offer struct {
	Version string
	// Size is what is downloaded for it, in bytes; 0 if that is not known.
	Size int64
	// Fetched: its content is on disk.
	Fetched bool
}

// Task is a job with what it is to deploy.
type Task struct {
	strategy.Job
	Want Want
}

// Driver is what the tools differ in. Each call gets what Look returned last.
type Driver[S State] interface {
	// Look returns what the host has.
	Look(ctx context.Context) (S, error)
	// Known returns what would be deployed by what the host knows now. It changes nothing,
	// and returns strategy.ErrNoPlan if the host cannot tell.
	Known(ctx context.Context, now S, want Want) (Offer, error)
	// Find asks for what there is to deploy. It fetches only what tells the version.
	Find(ctx context.Context, now S, task Task) (Offer, error)
	// Fetch brings what was found to disk, if the tool can do that before it deploys.
	// Nothing of it starts.
	Fetch(ctx context.Context, now S, task Task, offer Offer) (Offer, error)
	// Deploy makes a version the one that starts next.
	Deploy(ctx context.Context, now S, task Task, version string) error
	// Kept returns an error unless an old version is there, so that Restore can have it start.
	Kept(now S, version string) error
	// Restore makes an old version the one that starts next.
	Restore(ctx context.Context, now S, version string) error
	// Discard keeps a version from starting next, so that what runs starts again. It does
	// nothing if the version would not start.
	Discard(ctx context.Context, now S, version string) error
	// Confirm marks what runs as good, and a version that the machine gave up as bad; it is
	// empty if there is none.
	Confirm(ctx context.Context, now S, failed string) error
	// Idle waits until the tool does nothing.
	Idle(ctx context.Context, job strategy.Job) error
}

// Strategy upgrades a host by a Driver.
type Strategy[S State] struct {
	Driver Driver[S]
	// Tool is the name of the tool for people.
	Tool string
	// Reboot is why an upgrade takes a reboot.
	Reboot string
	// Shows says which command shows the systems of the host.
	Shows string
	// Root is the root folder of the host.
	Root string
	// Source returns where a run without a release finds the newest image; nil for a tool that knows
	// that by itself.
	Source func(now S) string
}

// task returns what a job is to deploy on a host.
func (s *Strategy[S]) task(job strategy.Job, now S) (task Task, err error) {
	task = Task{Job: job}
	switch {
	case job.Release != nil:
		task.Want, err = wanted(job, runtime.GOOS+"/"+runtime.GOARCH, now.Compatible())
	case s.Source != nil:
		task.Want.URL = s.Source(now)
	}
	return task, err
}

func (s *Strategy[S]) look(ctx context.Context) (now S, systems Systems, err error) {
	if now, err = s.Driver.Look(ctx); err == nil {
		systems, err = now.Systems()
	}
	return now, systems, err
}

// Detect implements strategy.Strategy.
func (s *Strategy[S]) Detect(ctx context.Context) error {
	now, err := s.Driver.Look(ctx)
	if err == nil {
		err = now.Check()
	}
	if err != nil {
		return fmt.Errorf("cannot upgrade by %s: %w", s.Tool, err)
	}
	return nil
}

// Releases implements strategy.Releaser.
func (s *Strategy[S]) Releases() []release.Kind { return []release.Kind{release.OfImages} }

// Versions returns those of the systems, and of the distribution.
func (s *Strategy[S]) Versions(ctx context.Context) (map[string]string, error) {
	versions, err := osinfo.Read(s.Root)
	if err != nil {
		return nil, err
	}
	now, err := s.Driver.Look(ctx)
	if err != nil {
		return nil, err
	}
	systems, err := now.Versions()
	maps.Copy(versions, systems)
	return versions, err
}

// Plan returns what an upgrade changes by what the host knows.
func (s *Strategy[S]) Plan(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	now, systems, err := s.look(ctx)
	if err != nil {
		return message.ChangeSet{}, err
	}
	task, err := s.task(job, now)
	if err != nil {
		return message.ChangeSet{}, err
	}
	offer, err := s.Driver.Known(ctx, now, task.Want)
	if err != nil {
		return message.ChangeSet{}, err
	}
	return systems.Plan(offer.Version, offer.Size, s.Reboot, job.Rejected), nil
}

// Prepare fetches what there is to deploy. Nothing of it starts. A version that runs or was
// rolled back is not fetched.
func (s *Strategy[S]) Prepare(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	now, systems, err := s.look(ctx)
	if err == nil {
		err = now.Check()
	}
	if err != nil {
		return message.ChangeSet{}, err
	}
	task, err := s.task(job, now)
	if err != nil {
		return message.ChangeSet{}, err
	}
	job.Progress(-1, "asking for the newest version")
	offer, err := s.Driver.Find(ctx, now, task)
	if err != nil {
		return message.ChangeSet{}, err
	}
	plan := systems.Plan(offer.Version, offer.Size, s.Reboot, job.Rejected)
	if len(plan.Changes) == 0 || offer.Fetched {
		return plan, nil
	}
	job.Progress(-1, "fetching "+offer.Version)
	if offer, err = s.Driver.Fetch(ctx, now, task, offer); err != nil {
		return message.ChangeSet{}, err
	}
	unix.Sync()
	return systems.Plan(offer.Version, offer.Size, s.Reboot, job.Rejected), nil
}

// Upgrade deploys the version of the plan, unless it is deployed.
func (s *Strategy[S]) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
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
	task, err := s.task(job, now)
	if err != nil {
		return 0, err
	}
	want := job.Plan.Changes[0]
	job.Progress(-1, "deploying "+want.To)
	if err := synced(s.Driver.Deploy(ctx, now, task, want.To)); err != nil {
		return 0, err
	}
	if now, systems, err = s.look(ctx); err != nil {
		return 0, err
	}
	if outcome := systems.Outcome(job.Plan); outcome != strategy.NotDone {
		return outcome, nil
	}
	err = strategy.Fail(message.Install, fmt.Errorf("%s has deployed %s without an error, and yet %s would not start next but %s; %s", s.Tool, want.Name, want.To, cmp.Or(systems.Next, "what runs"), s.Shows))
	if systems.Next == "" {
		return 0, err
	}
	// Nobody has planned what would start.
	return 0, errors.Join(err, synced(s.Driver.Discard(ctx, now, systems.Next)))
}

// synced has what a driver did on disk: a boot loader reads it, and the tools do not all sync it.
func synced(err error) error {
	unix.Sync()
	return err
}

// Resume waits until the tool is idle and compares the systems with the plan. What broke off
// begins again: the system that it wrote to does not start.
func (s *Strategy[S]) Resume(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	if len(job.Plan.Changes) == 0 {
		return strategy.Done, nil
	}
	if err := s.Driver.Idle(ctx, job); err != nil {
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
func (s *Strategy[S]) Missing(ctx context.Context, job strategy.Job) ([]message.Change, error) {
	if len(job.Plan.Changes) == 0 {
		return nil, nil
	}
	_, systems, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	return systems.Missing(job), nil
}

// Verify checks that the version of the plan runs.
func (s *Strategy[S]) Verify(ctx context.Context, job strategy.Job) error {
	_, systems, err := s.look(ctx)
	if err != nil {
		return err
	}
	return systems.Verify(job.Plan)
}

// PrepareRollback implements strategy.RollbackPreparer: the system from before is still on the host, or
// there is no way back.
func (s *Strategy[S]) PrepareRollback(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	if len(job.Plan.Changes) == 0 {
		return message.ChangeSet{}, nil
	}
	now, systems, err := s.look(ctx)
	if err == nil {
		err = now.Check()
	}
	if err != nil {
		return message.ChangeSet{}, err
	}
	plan := systems.Undo(job).Plan(job.Progress)
	for _, c := range plan.Changes {
		if systems.Running != c.From {
			continue // It has not started yet.
		}
		if err := s.Driver.Kept(now, c.To); err != nil {
			return message.ChangeSet{}, strategy.Fail(message.Artifact, fmt.Errorf("cannot go back: %w", err))
		}
		plan.Reboot = "the system from before starts"
	}
	return plan, nil
}

// Rollback has the system from before start next.
func (s *Strategy[S]) Rollback(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	if len(job.Plan.Changes) == 0 {
		return strategy.Done, nil
	}
	now, systems, err := s.look(ctx)
	if err != nil {
		return 0, err
	}
	switch c := job.Plan.Changes[0]; systems.Back(c) {
	case Restore:
		return strategy.RebootRequired, synced(s.Driver.Restore(ctx, now, c.From))
	case UnderWay:
		return strategy.RebootRequired, nil
	default:
		return strategy.Done, synced(s.Driver.Discard(ctx, now, c.To))
	}
}

// Booted tells which system has started, and which the machine gave up.
func (s *Strategy[S]) Booted(ctx context.Context) (strategy.Boot, error) {
	_, systems, err := s.look(ctx)
	return systems.Boot(), err
}

// Confirm keeps what a start came to.
func (s *Strategy[S]) Confirm(ctx context.Context, boot strategy.Boot) error {
	now, err := s.Driver.Look(ctx)
	if err != nil {
		return err
	}
	return synced(s.Driver.Confirm(ctx, now, boot.Failed))
}
