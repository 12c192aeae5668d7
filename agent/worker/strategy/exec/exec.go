// Package exec is the strategy of a folder of scripts: each action of a host is
// handed to the script of its name. It starts scripts, bounds their time and
// output, and reads their exit status and what they print.
//
// It never ends a script because the worker stops: an upgrade goes on, and the
// next call waits for it. It decides nothing about the order of actions, and
// passes no secret as an argument.
//
// # Scripts
//
// versions, upgrade and resume must be there; resume is the one that knows the
// truth after a crash. Without prepare or verify there is nothing to prepare or
// verify, without rollback there is none. The folder and its scripts belong to
// root or to the worker's user and are writable by nobody else; a script is a
// regular executable file. Other files in the folder are left alone. A script
// runs in the folder, without arguments.
//
// # Input
//
// Standard input is one JSON object and ends after it. Its members, which are
// absent where they do not apply (versions has only "action"):
//
//	{"action": "upgrade", "tenant": "acme", "host": "h01", "run": 41,
//	 "not-after": "2027-01-31T04:00:00Z", "boot-id": "0a54..."}
//
// The environment holds PATH and HOME (the worker's), LANG=C.UTF-8,
// OSUPGRADE_ACTION, OSUPGRADE_TENANT, OSUPGRADE_HOST, OSUPGRADE_RUN,
// OSUPGRADE_LOCK_FD and Options.Env; nothing else.
//
// # Output
//
// versions prints to standard output either one flat JSON object of strings,
// package to version, or lines of a package, blanks and its version: at least
// one, at most 10,000, in at most 1 MiB.
//
// What any other script prints, on standard output or error, goes straight to
// StateDir/output/RUN-ACTION.log, so that the script can go on printing when
// the worker is dead. Of versions it is standard error, in versions.log. A line
// that is a JSON object of "progress" (0 to 100) and "message", both optional,
// tells how far the work is; the text of any other line does too, as a message.
// A file that grows past Options.OutputLimit is emptied, and a line in it says
// so.
//
// # Exit status
//
//	0      done
//	10     upgrade, resume: in place after a reboot
//	11     resume: not done, upgrade may run again
//	75     failed; kept free for a later meaning, as EX_TEMPFAIL
//	other  failed; the last line printed that is not empty says why
//
// # Time
//
// A script that exceeds its time limit gets SIGTERM, and SIGKILL after
// Options.Grace, it and its whole process group. When the call's context ends,
// the call returns its error while the script goes on without the worker; so
// does a script whose worker is killed. A service manager must therefore end
// the worker alone (systemd: KillMode=process).
//
// # Lock
//
// Every script inherits a lock on StateDir/exec.lock at the descriptor that
// OSUPGRADE_LOCK_FD names, which is 8. The lock lasts until the script and all
// that it started have ended, and no script starts before. A process that a
// script leaves in the background on purpose must close it, as in
//
//	daemon 8>&- &
//
// or the next script waits for that process, until its time limit says so.
package exec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

const (
	// DefaultOutputLimit is how large a script's output may grow, in bytes.
	DefaultOutputLimit = 8 << 20
	// DefaultGrace is how long a script has between SIGTERM and SIGKILL.
	DefaultGrace = 10 * time.Second
)

// Options tells where the scripts are and what they may use.
type Options struct {
	// Dir is the folder of scripts.
	Dir string
	// StateDir is where the output and the lock are kept; it is made where
	// there is none. Scripts of one StateDir never run at the same time.
	StateDir string
	// Timeouts bounds each action.
	Timeouts Timeouts
	// OutputLimit bounds the output of one script, in bytes; zero means
	// DefaultOutputLimit.
	OutputLimit int64
	// Env is added to the environment of each script.
	Env map[string]string
	// Grace is the time between SIGTERM and SIGKILL; zero means DefaultGrace.
	Grace time.Duration
	// After is time.After where nil.
	After func(time.Duration) <-chan time.Time
}

// Strategy upgrades a host by scripts. It may be used by several goroutines;
// its scripts run one after the other.
type Strategy struct {
	dir      string
	stateDir string
	limits   map[action]time.Duration
	output   int64
	env      []string
	grace    time.Duration
	after    func(time.Duration) <-chan time.Time
}

var _ strategy.Strategy = (*Strategy)(nil)

// New checks the options and makes the state folder. The scripts are checked by
// Detect, and each again before it starts.
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
	env, err := environment(o.Env, os.Getenv)
	if err != nil {
		return nil, err
	}
	s := &Strategy{dir: dir, stateDir: stateDir, limits: limits, output: o.OutputLimit, env: env, grace: o.Grace, after: o.After}
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
