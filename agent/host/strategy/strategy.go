// Package strategy defines how a host is upgraded: a Strategy prepares, upgrades,
// verifies and rolls back one host, and finds out after a crash what really
// happened. Prepare returns the plan, and done means that each change of the plan is
// installed. Each folder below contains one strategy.
//
// A strategy acts on its host. It never talks to the controller, keeps no journal
// and never decides the order of actions: the worker does.
package strategy

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Job describes the run and host of an action.
type Job struct {
	Tenant string
	Host   string
	// Run is the id of the run; 0 for Plan, which belongs to no run.
	Run uint64
	// NotAfter is when the run ends at the latest.
	NotAfter time.Time
	// BootID is the kernel's boot id at the time of the call.
	BootID string
	// Plan is what Prepare returned in this run, as the worker has it on disk. Plan and
	// Prepare get none. PrepareRollback and the Rollback of its run get what is to be undone.
	Plan message.ChangeSet
	// Release is what the run installs; nil if it has none, and then that is the newest that the
	// strategy finds. ReleaseName is its name.
	Release     *release.Release
	ReleaseName string
	// RollbackOf is the run that a run rolls back on this host; 0 in any other run. Plan and
	// Release are those of that run then, and Was is the release that the host had before it; nil
	// if it had none.
	RollbackOf uint64
	Was        *release.Release
	// Rejected are the versions that were rolled back on this host. A plan holds
	// them back until there is another version.
	Rejected message.Rejected
	// Fetch is set for Plan when it first has to fetch what there is to install, such as lists
	// of packages, because somebody has asked for it.
	Fetch bool
	// Staged is set for Missing when it is asked before the reboot: what takes effect
	// with the next boot is not missing then.
	Staged bool
	// Reversed is set for Missing when the plan is one that undoes an upgrade.
	Reversed bool
	// Outputs returns the outputs of the steps that the run has done, by name; nil if there are
	// none, for actions other than Upgrade and Resume, and for a strategy that is not an OutputsUser.
	// The site is asked for them: for Upgrade before it is called.
	Outputs func(ctx context.Context) (map[string]string, error)
	// Progress reports progress for people; it is never nil. percent is 0 to 100,
	// or negative if unknown.
	Progress func(percent int, message string)
}

// Outcome is the result of an upgrade or a rollback without an error.
type Outcome int

const (
	// Done means that no further action is needed.
	Done Outcome = iota + 1
	// RebootRequired means that the upgrade takes effect after a reboot, or
	// the old system runs after one. A soft reboot is none: it keeps the boot id.
	RebootRequired
	// NotDone is returned only by Resume: the interrupted upgrade had no effect
	// that matters, so Upgrade may be called again.
	NotDone
)

// Strategy upgrades one host. Each call returns when ctx ends. The text of an
// error becomes the host's reply, so it says what failed and what a person can do;
// Fail gives it a class.
type Strategy interface {
	// Detect returns an error when this host cannot be upgraded this way.
	Detect(ctx context.Context) error
	// Versions returns each relevant package and its version.
	Versions(ctx context.Context) (map[string]string, error)
	// Plan returns what an upgrade would change by what the host knows now. It changes
	// nothing, and fetches nothing but with job.Fetch. It returns ErrNoPlan if the strategy cannot tell.
	Plan(ctx context.Context, job Job) (message.ChangeSet, error)
	// Prepare does everything that needs no downtime: it downloads, stages and checks
	// the space. It changes nothing that runs, and the host must be able to run and
	// boot as before. When it returns, all that Upgrade needs is synced to
	// disk. It may be called again after a crash. The worker writes the plan to disk
	// before it answers.
	Prepare(ctx context.Context, job Job) (message.ChangeSet, error)
	// Upgrade carries out job.Plan. The worker calls it at most once per run, unless
	// Resume returns NotDone.
	Upgrade(ctx context.Context, job Job) (Outcome, error)
	// Resume returns the outcome of Upgrade after a crash, a boot or a passing failure
	// during it. It waits for an upgrade that still runs. It ignores how that ended,
	// compares the host with job.Plan, and repairs what it can.
	Resume(ctx context.Context, job Job) (Outcome, error)
	// Missing returns the changes of job.Plan that the host does not have; From is what
	// it has. The worker asks before it answers: done means that nothing is missing. After a
	// rollback it asks with the reversed plan: rolled back means that nothing of that is.
	Missing(ctx context.Context, job Job) ([]message.Change, error)
	// Verify checks the upgraded host, after the reboot if there was one.
	Verify(ctx context.Context, job Job) error
	// Rollback undoes a failed upgrade, and nothing that somebody else has changed (see
	// ToUndo). It may be called again after a crash, and is called again after the reboot
	// that it required. It returns ErrNoRollback if the strategy has no rollback.
	Rollback(ctx context.Context, job Job) (Outcome, error)
}

// RollbackPreparer is implemented by a Strategy that can roll back a run that is over.
type RollbackPreparer interface {
	// PrepareRollback finds out whether there is a way back from job.Plan, the plan of the run
	// that is rolled back, and fetches all that Rollback needs for it. Like Prepare it changes
	// nothing that runs. It returns the reversed plan, without what somebody else has changed
	// since, and tells that as progress. Without a way back it returns an error: nothing was
	// touched then. The worker calls Rollback in place of Upgrade, with what is to be undone as
	// job.Plan: again after a crash, and after the reboot that it required.
	PrepareRollback(ctx context.Context, job Job) (message.ChangeSet, error)
}

// Confirmer is implemented by a Strategy with more than one bootable system.
type Confirmer interface {
	// Booted tells which system has started. It is asked after every start of the
	// machine.
	Booted(ctx context.Context) (Boot, error)
	// Confirm marks the system that runs as good and the failed one as bad, so that Booted
	// names it no more. It is called after every start of the machine: in a run after
	// Verify, or when the checks of the run have passed if it has some after the host,
	// and otherwise at once. Those checks are waited for if the plan has a change to the
	// version that Booted calls running. It may be called twice: at first without the failed one, by
	// a worker that does not know yet whether the machine is in the hand of another.
	Confirm(ctx context.Context, boot Boot) error
}

// Boot is what a start of the machine came to.
type Boot struct {
	// Running is the version that has started.
	Running string
	// Failed is the version that the machine gave up by itself, by boot counting or a
	// watchdog; empty if there is none.
	Failed string
}

// Watcher is implemented by a Strategy that knows which files change with the
// versions.
type Watcher interface {
	// VersionPaths returns the files and folders to watch: after a change of one of
	// them Versions is called again. Reading the versions should not change them.
	VersionPaths() []string
}

// Printer is implemented by a Strategy whose actions print text.
type Printer interface {
	// Output returns the end of what an action of a run has printed so far: at most limit
	// bytes, and whether there was more before them. An action that has printed nothing
	// has no text and no error.
	Output(run uint64, action string, limit int) (printed []byte, cut bool, err error)
}

// Planner is implemented by a Strategy whose Prepare need not make a plan.
type Planner interface {
	// Plans reports whether Prepare makes a plan, so that one without changes changes
	// nothing. Without a plan nothing of an upgrade is proved.
	Plans() bool
}

// OutputsUser is implemented by a Strategy that may ask for the outputs of steps.
type OutputsUser interface {
	// UsesOutputs reports whether it asks for them.
	UsesOutputs() bool
}

// Releaser is implemented by a Strategy that carries out releases. A host whose strategy is none is
// never a member of a run that has a release: it would install something else.
type Releaser interface {
	// Releases are the kinds of releases that it carries out (release.Kind).
	Releases() []release.Kind
}

// CheckRelease returns an error for a release that a strategy does not carry out.
func CheckRelease(s Strategy, job Job) error {
	if job.Release == nil {
		return nil
	}
	var takes []release.Kind
	if r, ok := s.(Releaser); ok {
		takes = r.Releases()
	}
	return job.checkKind(takes)
}

// checkKind returns an error unless the release of a job is of one of some kinds.
func (j Job) checkKind(takes []release.Kind) error {
	if kind := j.Release.Kind(); !slices.Contains(takes, kind) {
		return Fail(message.Artifact, fmt.Errorf("release %s is of %s; this host carries out %s", j.ReleaseName, kind, release.Kinds(takes)))
	}
	return nil
}

// ErrNoRollback is returned by Rollback if the strategy has no rollback.
var ErrNoRollback = errors.New("this strategy has no rollback")

// ErrNoPlan is returned by Plan if the strategy cannot tell what it would change.
var ErrNoPlan = errors.New("this strategy cannot tell what it would change")

// Failure is an error with a class.
type Failure struct {
	Class message.Class
	Err   error
}

// Error is the text of the error, without its class.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the error.
func (f *Failure) Unwrap() error { return f.Err }

// Fail gives an error a class; without an error it returns nil.
func Fail(class message.Class, err error) error {
	if err == nil {
		return nil
	}
	return &Failure{Class: class, Err: err}
}

// ClassOf returns the class of an error: the outermost one, or none.
func ClassOf(err error) message.Class {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Class
	}
	return ""
}

// Lacks returns the changes of a plan that are not among the versions of a host: for a
// Strategy whose versions have each name of its plans.
func Lacks(plan message.ChangeSet, versions map[string]string) (missing []message.Change) {
	for _, c := range plan.Changes {
		if versions[c.Name] != c.To {
			missing = append(missing, message.Change{Name: c.Name, From: versions[c.Name], To: c.To})
		}
	}
	return missing
}

// Matches reports whether a name, such as that of a package, matches one of some patterns
// with "*" and "?".
func Matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matches, err := path.Match(pattern, name)
		return err == nil && matches
	})
}
