// Package exec is the strategy that runs a folder of scripts, one script for each
// action. It starts scripts, limits their time and output, and interprets their
// exit status and output.
//
// It never kills a script because the worker stops: the script continues, and the
// next call waits for it. It never decides the order of actions and passes no
// secret as an argument.
//
// # Scripts
//
// versions, upgrade and resume are required; resume finds out after a crash what
// happened. Without prepare or verify there is nothing to prepare or verify,
// without rollback there is no rollback. The folder and its scripts belong to root
// or to the worker's user, and nobody else may write them. A script is an
// executable regular file. Other files in the folder are ignored. A script runs in
// the folder, without arguments.
//
// # Input
//
// Standard input is one JSON object. Members that do not apply are absent
// (versions has only "action"):
//
//	{"action": "upgrade", "tenant": "acme", "host": "h01", "run": 41,
//	 "not-after": "2027-01-31T04:00:00Z", "boot-id": "0a54..."}
//
// The environment holds PATH and HOME (the worker's), LANG=C.UTF-8,
// OSUPGRADE_ACTION, OSUPGRADE_TENANT, OSUPGRADE_HOST, OSUPGRADE_RUN and
// OSUPGRADE_LOCK_FD; nothing else. What else a script needs it reads from a file of
// its folder.
//
// # Output
//
// versions prints to standard output either one flat JSON object of strings, from
// package to version, or lines of a package, blanks and its version: 1 to 10,000
// packages in at most 1 MiB. It runs at the start of the worker, after each step,
// at regular intervals, and after a change of one of Options.VersionPaths, such as
// /var/lib/dpkg/status; it should not change these itself.
//
// Standard output and error of any other script go directly to
// StateDir/output/RUN-ACTION.log, so that the script can continue to print after
// the worker has died. Standard error of versions goes to versions.log. A line
// that is a JSON object of "progress" (0 to 100) and "message", both optional,
// reports progress; any other line reports its text as a message. A file larger
// than Options.OutputLimit is emptied, and a line in it says so. The worker sends the
// end of the file to the site, which keeps it with the run as it was printed: a script
// must not print a secret.
//
// # Exit status
//
//	0      done
//	10     upgrade, resume: done after a reboot
//	11     resume: not done, upgrade may run again
//	75     failed; reserved, as EX_TEMPFAIL
//	other  failed; the last line that is not empty is the reason
//
// # Timeouts
//
// When a timeout expires, the script and its process group get SIGTERM, and
// SIGKILL after Options.Grace. When the context of a call ends, the call returns
// its error and the script continues without the worker, as after a crash of the
// worker. A service manager must therefore stop only the worker (systemd:
// KillMode=process).
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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
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
	// After is time.After if nil.
	After func(time.Duration) <-chan time.Time
}

// Strategy upgrades a host by scripts. It is safe for concurrent use; its scripts
// run one after the other.
type Strategy struct {
	dir      string
	stateDir string
	watched  []string
	limits   map[action]time.Duration
	output   int64
	env      []string
	grace    time.Duration
	after    func(time.Duration) <-chan time.Time
}

var (
	_ strategy.Strategy = (*Strategy)(nil)
	_ strategy.Watcher  = (*Strategy)(nil)
	_ strategy.Printer  = (*Strategy)(nil)
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
	if o.Dir == "" || o.StateDir == "" {
		return nil, errors.New("it needs a folder of scripts and a state folder")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
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
	s := &Strategy{dir: dir, stateDir: stateDir, watched: o.VersionPaths, limits: limits, output: o.OutputLimit, env: script.Environment(os.Getenv, nil), grace: o.Grace, after: o.After}
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
	return nil
}

// Versions runs the script versions and returns its output.
func (s *Strategy) Versions(ctx context.Context) (map[string]string, error) {
	silent := strategy.Job{Progress: func(int, string) {}}
	var versions map[string]string
	_, err := s.call(ctx, actionVersions, silent, func(printed []byte) (err error) {
		versions, err = parseVersions(printed)
		return err
	})
	return versions, err
}

// VersionPaths implements strategy.Watcher.
func (s *Strategy) VersionPaths() []string { return s.watched }

// Output implements strategy.Printer.
func (s *Strategy) Output(run uint64, step string, limit int) (printed []byte, cut bool, err error) {
	return readEnd(s.outputPath(logName(holder{action(step), run})), limit)
}

// Plan implements strategy.Strategy: scripts cannot tell.
func (s *Strategy) Plan(context.Context, strategy.Job) (message.Plan, error) {
	return message.Plan{}, strategy.ErrNoPlan
}

// Prepare runs the script prepare, if there is one.
func (s *Strategy) Prepare(ctx context.Context, job strategy.Job) (message.Plan, error) {
	_, err := s.callOptional(ctx, actionPrepare, job, nil)
	return message.Plan{}, err
}

// Missing compares the plan with the versions. Before a reboot it finds nothing, for
// the script versions tells what runs.
func (s *Strategy) Missing(ctx context.Context, job strategy.Job) ([]message.Change, error) {
	if job.Staged || len(job.Plan.Changes) == 0 {
		return nil, nil
	}
	versions, err := s.Versions(ctx)
	return strategy.Lacks(job.Plan, versions), err
}

// Upgrade runs the script upgrade. The script continues when ctx ends.
func (s *Strategy) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	return s.call(ctx, actionUpgrade, job, nil)
}

// Resume waits for a script that still runs, then runs the script resume.
func (s *Strategy) Resume(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	return s.call(ctx, actionResume, job, nil)
}

// Verify runs the script verify, if there is one.
func (s *Strategy) Verify(ctx context.Context, job strategy.Job) error {
	_, err := s.callOptional(ctx, actionVerify, job, nil)
	return err
}

// Rollback runs the script rollback. Without one it returns ErrNoRollback.
func (s *Strategy) Rollback(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	return s.callOptional(ctx, actionRollback, job, strategy.ErrNoRollback)
}

// callOptional runs a script; if there is none it returns missing.
func (s *Strategy) callOptional(ctx context.Context, a action, job strategy.Job, missing error) (strategy.Outcome, error) {
	has, err := s.has(a)
	if err != nil {
		return 0, fmt.Errorf("cannot run %s: %w", a, err)
	}
	if !has {
		return 0, missing
	}
	return s.call(ctx, a, job, nil)
}

// Timeouts are the timeouts of the actions. Each applies twice: to the wait for an
// earlier script, and then to the script itself. Zero means the default.
type Timeouts struct {
	// Versions is 1 minute by default.
	Versions time.Duration
	// Prepare is 1 hour by default.
	Prepare time.Duration
	// Upgrade is 1 hour by default.
	Upgrade time.Duration
	// Resume is 1 hour by default, because it waits for an upgrade that still runs.
	Resume time.Duration
	// Verify is 10 minutes by default.
	Verify time.Duration
	// Rollback is 1 hour by default.
	Rollback time.Duration
}

// WithStep returns the timeouts for steps of a given length. versions and verify
// get at most their default, because a hanging script blocks the others, which wait
// for its lock.
func WithStep(step time.Duration) Timeouts {
	return Timeouts{
		Versions: min(step, defaultLimit(actionVersions)), Verify: min(step, defaultLimit(actionVerify)),
		Prepare: step, Upgrade: step, Resume: step, Rollback: step,
	}
}

// limits returns the timeouts with the defaults filled in.
func (t Timeouts) limits() (map[action]time.Duration, error) {
	limits := map[action]time.Duration{
		actionVersions: t.Versions,
		actionPrepare:  t.Prepare,
		actionUpgrade:  t.Upgrade,
		actionResume:   t.Resume,
		actionVerify:   t.Verify,
		actionRollback: t.Rollback,
	}
	for a, limit := range limits {
		if limit < 0 {
			return nil, fmt.Errorf("the time limit of %s is %s; use more than 0s", a, limit)
		}
		if limit == 0 {
			limits[a] = defaultLimit(a)
		}
	}
	return limits, nil
}

func defaultLimit(a action) time.Duration {
	switch a {
	case actionVersions:
		return time.Minute
	case actionVerify:
		return 10 * time.Minute
	default:
		return time.Hour
	}
}
