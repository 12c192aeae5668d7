// Package exec is the strategy that runs each action in a process of its own: a script
// of a folder, or a program that Serve serves. It starts processes, limits their time and
// output, and interprets their exit status and output.
//
// It never kills an action because the worker stops: the action continues, and the
// next call waits for it. It never decides the order of actions and passes no
// secret as an argument.
//
// # Scripts
//
// versions, upgrade and resume are required; resume finds out after a crash what
// happened. Without prepare or verify there is nothing to prepare or verify,
// without rollback there is no rollback, without prepare-rollback no earlier run is rolled back, without plan nobody can tell in advance what an
// upgrade would change. Without missing the plan is compared with the versions. booted
// and confirm belong to a host with more than one bootable system: both or neither.
// The folder and its scripts belong to root or to the worker's user, and nobody else may
// write them. A script is an executable regular file. Other files in the folder are
// ignored. A script runs in the folder, without arguments.
//
// # Input
//
// Standard input is one JSON object. Members that do not apply are absent
// (versions has only "format" and "action"):
//
//	{"format": 1, "action": "upgrade", "tenant": "acme", "host": "h01", "run": 41,
//	 "not-after": "2027-01-31T04:00:00Z", "boot-id": "0a54...",
//	 "plan": {"changes": [{"name": "kernel", "from": "6.1.0", "to": "6.1.1"}]}}
//
// "plan" is what prepare told in this run. Where a run rolls back an earlier one, prepare-rollback comes
// in place of prepare, and rollback in place of upgrade and resume. Both get "rollback-of", the number of the
// earlier run, and as "plan" and "release" those of that run; of "plan", rollback gets what
// prepare-rollback has told that it undoes. "was" is the release that the host had before that run, in the
// form of "release", but its name is always "was"; it is absent if the host had none. plan and prepare get "rejected", such as
// {"kernel": ["6.1.1", "6.1.2"]}: the versions of each name that were rolled back and are
// not to be offered again; the name "" stands for any. plan gets "fetch" when somebody has
// asked for it: it then first fetches what there is to install, such as lists of packages.
// missing gets "staged" when it is asked before the reboot: what takes effect with the next
// boot is not missing then. To prove a rollback it gets "reversed" and the reversed plan: it
// must compare the host with "to" of each change, not with what it has stored of the upgrade,
// and print what the host has as "from". A change without "to" is a package that was not there
// before. Without a plan nothing is proved, and the reply says so.
// confirm gets "boot", which is what booted printed. Each action of a run with a release gets
// "release": its name, its digest and, as "text", what the release is.
//
// The environment holds PATH and HOME (the worker's), LANG=C.UTF-8,
// OSUPGRADE_ACTION, OSUPGRADE_TENANT, OSUPGRADE_HOST, OSUPGRADE_RUN and
// OSUPGRADE_LOCK_FD; OSUPGRADE_ROLLBACK_OF, the number of the run that is rolled back; in a run with a release also OSUPGRADE_RELEASE, its name,
// OSUPGRADE_RELEASE_DIGEST and OSUPGRADE_RELEASE_JSON, the file with its text; nothing else. If steps of
// the run have given outputs, upgrade and resume find them
// in the folder OSUPGRADE_OUTPUTS, a file for each, until they end. What else a script needs it reads from a file of
// its folder.
//
// # Output
//
// versions prints to standard output either one flat JSON object of strings, from
// package to version, or lines of a package, blanks and its version: 1 to 10,000
// packages in at most 1 MiB. It runs at the start of the worker, after each action,
// at regular intervals, and after a change of one of Options.VersionPaths, such as
// /var/lib/dpkg/status; it should not change these itself. plan, which runs
// each time after it, prints a plan, missing a plan whose changes are missing, booted
// {"running": "1.0", "failed": "1.1"}; "failed" is the version that the machine gave up by
// itself, if there is one. confirm runs after verify or, in a run that checks the host after
// that, when these checks have passed on the version that the plan has for it.
//
// Standard output and error of any other script go directly to
// StateDir/output/RUN-ACTION.log, so that the script can continue to print after
// the worker has died. Standard error of those that print a result goes to ACTION.log. A
// line that is a JSON object of "progress" (0 to 100), "message" and "class", each
// optional, reports progress and, before a failure, its class; any other line reports its
// text as a message. A line {"plan": {...}} of prepare is the plan, by which the worker
// proves the upgrade; one of prepare-rollback is the reversed plan. Without it all of the plan is
// undone. A file larger than Options.OutputLimit is emptied, and a line in it
// says so. The worker sends the end of the file to the site, which keeps it with the run
// as it was printed: a script must not print a secret.
//
// # Exit status
//
//	0      done
//	10     upgrade, resume, rollback: done after a reboot
//	11     resume: not done, upgrade may run again; plan, rollback, prepare-rollback: there is none
//	75     failed, and may pass by itself: class transient, unless a line says otherwise
//	other  failed; the last line that is not empty is the reason
//
// # Timeouts
//
// When a timeout expires, the script and its process group get SIGTERM, and
// SIGKILL after Options.Grace. When the context of a call ends, the call returns
// its error and the script continues without the worker, as after a crash of the
// worker. A service manager must therefore stop only the worker (systemd:
// KillMode=process); Options.Wrap can move the script out of the worker's service.
//
// # Lock
//
// Every script inherits a lock on StateDir/exec.lock at descriptor 8, which
// OSUPGRADE_LOCK_FD names. The lock lasts until the script and all its child
// processes have ended, and no script starts before. A permanent process that a
// script starts must close the descriptor, as in
//
//	daemon 8>&- &
//
// or the next script waits for that process until its timeout expires.
package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

const (
	// DefaultOutputLimit is the largest size of a script's output, in bytes.
	DefaultOutputLimit = 8 << 20
	// DefaultGrace is the grace period between SIGTERM and SIGKILL.
	DefaultGrace = 10 * time.Second
)

// Options configure the strategy.
type Options struct {
	// Dir is the folder of scripts.
	Dir string
	// Program carries out the actions in place of a folder of scripts: it gets the
	// name of the action as its last argument, and Options in its request. Serve is
	// the other half.
	Program []string
	Options json.RawMessage
	// Releases are the kinds of releases that the program carries out. Scripts get those of data.
	Releases []release.Kind
	// Fits finds out whether the program can upgrade this host; nil means that it can.
	Fits func(context.Context) error
	// Wrap is put before each command: a program, with its arguments, that becomes the
	// command that follows.
	Wrap []string
	// StateDir is the folder of the output and the lock; New creates it. Scripts
	// of one StateDir never run at the same time.
	StateDir string
	// Timeouts are the timeouts of the actions.
	Timeouts Timeouts
	// VersionPaths are the files and folders that change with the versions.
	VersionPaths []string
	// OutputLimit limits the output of one script, in bytes; zero means
	// DefaultOutputLimit.
	OutputLimit int64
	// Grace is the grace period between SIGTERM and SIGKILL; zero means
	// DefaultGrace.
	Grace time.Duration
	// Started is called with each action and its process group; it may be nil. A check
	// of a strategy kills it then.
	Started func(name string, group int)
	// After is time.After if nil.
	After func(time.Duration) <-chan time.Time
}

// Strategy upgrades a host by scripts. It is safe for concurrent use; its scripts
// run one after the other.
type Strategy struct {
	dir      string
	program  []string
	options  json.RawMessage
	releases []release.Kind
	fits     func(context.Context) error
	wrap     []string
	started  func(string, int)
	stateDir string
	watched  []string
	limits   map[action]time.Duration
	output   int64
	env      []string
	grace    time.Duration
	after    func(time.Duration) <-chan time.Time
}

var (
	_ strategy.Strategy         = (*Strategy)(nil)
	_ strategy.Confirmer        = (*Strategy)(nil)
	_ strategy.Watcher          = (*Strategy)(nil)
	_ strategy.Planner          = (*Strategy)(nil)
	_ strategy.OutputsUser      = (*Strategy)(nil)
	_ strategy.Printer          = (*Strategy)(nil)
	_ strategy.Releaser         = (*Strategy)(nil)
	_ strategy.RollbackPreparer = (*Strategy)(nil)
)

// New checks the options and creates the state folder. Detect checks the scripts,
// and each script is checked again before it starts.
func New(o Options) (*Strategy, error) {
	s, err := configure(o)
	if err != nil {
		return nil, fmt.Errorf("cannot use exec strategy: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(s.stateDir, outputFolder), 0o700); err != nil {
		return nil, fmt.Errorf("cannot use exec strategy: %w", err)
	}
	return s, nil
}

func configure(o Options) (*Strategy, error) {
	if (o.Dir == "") == (o.Program == nil) || o.StateDir == "" {
		return nil, errors.New("it needs a folder of scripts or a program, and a state folder")
	}
	dir := o.Dir
	if o.Program == nil {
		var err error
		if dir, err = filepath.Abs(o.Dir); err != nil {
			return nil, err
		}
	}
	stateDir, err := filepath.Abs(o.StateDir)
	if err != nil {
		return nil, err
	}
	limits, err := o.Timeouts.limits()
	if err != nil {
		return nil, err
	}
	if o.OutputLimit < 0 || o.Grace < 0 {
		return nil, fmt.Errorf("output limit %d and grace %s must not be negative", o.OutputLimit, o.Grace)
	}
	s := &Strategy{
		dir: dir, program: o.Program, options: o.Options, releases: o.Releases, fits: o.Fits, wrap: o.Wrap, started: o.Started, stateDir: stateDir,
		watched: o.VersionPaths, limits: limits, output: o.OutputLimit, env: script.Environment(os.Getenv, nil), grace: o.Grace, after: o.After,
	}
	if o.Program == nil {
		s.releases = []release.Kind{release.OfData}
	}
	s.setDefaults()
	return s, nil
}

func (s *Strategy) setDefaults() {
	if s.output == 0 {
		s.output = DefaultOutputLimit
	}
	if s.grace == 0 {
		s.grace = DefaultGrace
	}
	if s.started == nil {
		s.started = func(string, int) {}
	}
	if s.after == nil {
		s.after = time.After
	}
}

// Detect checks the folder and its scripts.
func (s *Strategy) Detect(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.checkAll(); err != nil {
		return fmt.Errorf("cannot upgrade by scripts: %w", err)
	}
	if s.fits != nil {
		return s.fits(ctx)
	}
	return nil
}

// Versions runs the action versions and returns its output.
func (s *Strategy) Versions(ctx context.Context) (map[string]string, error) {
	var versions map[string]string
	_, err := s.call(ctx, call{action: actionVersions, parse: func(printed []byte) (err error) {
		versions, err = parseVersions(printed)
		return err
	}})
	return versions, err
}

// VersionPaths implements strategy.Watcher.
func (s *Strategy) VersionPaths() []string { return s.watched }

// Output implements strategy.Printer.
func (s *Strategy) Output(run uint64, name string, limit int) (printed []byte, cut bool, err error) {
	return readOutput(s.outputPath(logName(holder{action(name), run})), limit)
}

// Plan runs the action plan. Without one it returns ErrNoPlan.
func (s *Strategy) Plan(ctx context.Context, job strategy.Job) (plan message.ChangeSet, err error) {
	_, err = s.callOptional(ctx, call{action: actionPlan, job: job, parse: func(printed []byte) (err error) {
		plan, err = parsePlan(printed)
		return err
	}}, strategy.ErrNoPlan)
	return plan, err
}

// Prepare runs the action prepare, if there is one, and returns the plan that it told.
// Scripts need tell none.
func (s *Strategy) Prepare(ctx context.Context, job strategy.Job) (plan message.ChangeSet, err error) {
	told := false
	_, err = s.callOptional(ctx, call{action: actionPrepare, job: job, planned: func(p message.ChangeSet) { plan, told = p, true }}, nil)
	if err == nil && !told && s.program != nil {
		err = errors.New("prepare is done and told no plan, by which the upgrade would be proved")
	}
	return plan, err
}

// Releases implements strategy.Releaser.
func (s *Strategy) Releases() []release.Kind { return s.releases }

// Plans implements strategy.Planner: scripts need make no plan.
func (s *Strategy) Plans() bool { return s.program != nil }

// Upgrade runs the action upgrade. It continues when ctx ends.
func (s *Strategy) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	return s.call(ctx, call{action: actionUpgrade, job: job})
}

// Resume waits for an action that still runs, then runs the action resume.
func (s *Strategy) Resume(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	return s.call(ctx, call{action: actionResume, job: job})
}

// Missing runs the action missing. Without one it compares the plan with the versions,
// which tell what runs: before a reboot it then finds nothing.
func (s *Strategy) Missing(ctx context.Context, job strategy.Job) (missing []message.Change, err error) {
	has, err := s.has(actionMissing)
	if err != nil {
		return nil, fmt.Errorf("cannot run %s: %w", actionMissing, err)
	}
	if has {
		_, err = s.call(ctx, call{action: actionMissing, job: job, parse: func(printed []byte) (err error) {
			missing, err = parseMissing(printed)
			return err
		}})
		return missing, err
	}
	if job.Staged || len(job.Plan.Changes) == 0 {
		return nil, nil
	}
	versions, err := s.Versions(ctx)
	if err != nil {
		return nil, err
	}
	return strategy.Lacks(job.Plan, versions), nil
}

// Verify runs the action verify, if there is one.
func (s *Strategy) Verify(ctx context.Context, job strategy.Job) error {
	_, err := s.callOptional(ctx, call{action: actionVerify, job: job}, nil)
	return err
}

// PrepareRollback runs the action prepare-rollback. A script need not tell a plan: then all of the plan is
// undone.
func (s *Strategy) PrepareRollback(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	for _, a := range []action{actionRollback, actionPrepareRollback} {
		has, err := s.has(a)
		if err == nil && !has {
			err = fmt.Errorf("%w: there is no script %s, by which a host rolls back an earlier run", strategy.ErrNoRollback, a)
		}
		if err != nil {
			return message.ChangeSet{}, err
		}
	}
	plan := message.ChangeSet{Changes: strategy.Reversed(job.Plan.Changes)}
	_, err := s.call(ctx, call{action: actionPrepareRollback, job: job, planned: func(p message.ChangeSet) { plan = p }})
	return plan, err
}

// Rollback runs the action rollback. Without one it returns ErrNoRollback.
func (s *Strategy) Rollback(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	return s.callOptional(ctx, call{action: actionRollback, job: job}, strategy.ErrNoRollback)
}

// Booted runs the action booted. Without one the host has only one system, and the Boot is
// zero.
func (s *Strategy) Booted(ctx context.Context) (boot strategy.Boot, err error) {
	_, err = s.callOptional(ctx, call{action: actionBooted, parse: func(printed []byte) (err error) {
		boot, err = parseBoot(printed)
		return err
	}}, nil)
	return boot, err
}

// Confirm runs the action confirm, if there is one.
func (s *Strategy) Confirm(ctx context.Context, boot strategy.Boot) error {
	_, err := s.callOptional(ctx, call{action: actionConfirm, boot: boot}, nil)
	return err
}

// callOptional runs an action; if there is no script for it, it returns absent.
func (s *Strategy) callOptional(ctx context.Context, c call, absent error) (strategy.Outcome, error) {
	has, err := s.has(c.action)
	if err != nil {
		return 0, fmt.Errorf("cannot run %s: %w", c.action, err)
	}
	if !has {
		return 0, absent
	}
	return s.call(ctx, c)
}
