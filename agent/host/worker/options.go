package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// Machine is the computer that the worker runs on.
type Machine interface {
	// BootID returns the kernel's boot id, which changes at every boot and
	// only then.
	BootID() (string, error)
	// Reboot starts a reboot and returns when it is accepted, at the latest when
	// ctx ends. The deadline of ctx also ends the reboot command; the end of the
	// worker does not. job says for which run, and takes what the reboot waits for.
	Reboot(ctx context.Context, job strategy.Job) error
}

// Limits bound the actions of a run; each must be positive.
type Limits struct {
	// Action bounds one call of the strategy.
	Action time.Duration
	// Reboot bounds the call that asks for a reboot, and then the time to the
	// end of this process.
	Reboot time.Duration
}

// Options configure a worker.
type Options struct {
	Tenant, Host, Application string
	// Version is the version of this program.
	Version string
	// Dir is the state directory, which holds the journal. It must survive
	// reboots.
	Dir      string
	HostLog  log.HostLog
	Strategy strategy.Strategy
	Machine  Machine
	Limits   Limits
	Log      *slog.Logger
	// Role and Labels are matched by rollouts. LabelFiles, when set, has all labels in force.
	Role       string
	Labels     map[string]string
	LabelFiles LabelFiles
	// VersionsInterval is how often the versions are read though nothing tells that
	// they have changed; zero means DefaultVersionsInterval.
	VersionsInterval time.Duration
	// Watch calls changed when it has begun and after each change of one of the paths,
	// until ctx ends or the watch fails (package filewatch); nil means that nothing is
	// watched.
	Watch func(ctx context.Context, paths []string, changed func()) error
	// Checks runs the checks and hooks of a rollout; nil means that they fail.
	Checks Checks
	// SelfCheck finds out what the host has and lacks for a run; nil when it does not
	// say. It is called at the start and about once per heartbeat, beside everything
	// else.
	SelfCheck func(ctx context.Context) message.SelfReport
	// System tells what the host runs, such as "debian 12 amd64": plans of a release are compared only
	// with those of the same system. Nil means that nobody can say.
	System func() string
	// Busy tells when the host is not to be upgraded; nil means that it always may be.
	Busy Busy
	// Sources are reports that depend on nothing but the machine.
	Sources []Source
	// Leased is called when this worker gets the lease of the host, and when
	// another worker has it; it may be nil.
	Leased func(held bool)
	// Supervisor starts the worker anew when it has hung or its program was replaced; nil
	// means that nobody does.
	Supervisor *Supervisor
	// WriteFile writes the journal; nil means durable.WriteFile.
	WriteFile WriteFile
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// At is called with the label of each action, before and after it; tests crash
	// there. It may be nil.
	At func(label string)
}

// Busy reports whether a program on the host says "not now" (package busy).
type Busy interface {
	// Now returns why the host is not to be upgraded now; nil when it may be.
	Now() *message.NotNow
	// Watch calls changed when it has begun, and whenever Now may return something else
	// than before, until ctx ends or the watch fails. changed does not block for long.
	Watch(ctx context.Context, changed func()) error
}

// LabelFiles are the labels of a host that its programs may change (package labels).
type LabelFiles interface {
	// Labels returns the labels in force.
	Labels() map[string]string
	// Watch calls changed when it has begun, and whenever Labels may return something else
	// than before, until ctx ends or the watch fails. changed does not block for long.
	Watch(ctx context.Context, changed func()) error
}

// Checks runs the checks and hooks of a rollout on this host.
type Checks interface {
	// Run runs a task and returns its outcome, at the latest when ctx ends.
	Run(ctx context.Context, t message.Task) message.Outcome
	// Baseline notes durably what the checks after the upgrade of a run compare the host
	// with. If the run has a baseline, it keeps that.
	Baseline(ctx context.Context, run uint64) error
}

// noChecks are the Checks of a worker without checks.
type noChecks struct{}

func (noChecks) Run(_ context.Context, t message.Task) message.Outcome {
	return t.Outcome(false, "this worker runs no checks")
}

func (noChecks) Baseline(context.Context, uint64) error { return nil }

// Source is a report that the worker sends once a day, and after each change.
type Source struct {
	Kind *report.Kind
	Reader
}

// Reader reads what a host reports.
type Reader interface {
	// Report returns the body of the report.
	Report() ([]byte, error)
	// Watch calls changed when it has begun, and whenever Report may return something else
	// than before, until ctx ends or the watch fails. changed does not block for long.
	Watch(ctx context.Context, changed func()) error
}

// Supervisor watches over the loop of a worker, and starts the next worker when this
// one has ended.
type Supervisor struct {
	// Beat is how long the loop waits for something to happen before it goes round.
	Beat time.Duration
	// Alive is called by the loop each time that it goes round, and before each call of the
	// strategy, with the time by which it will call again. A loop that does not has hung.
	Alive func(until time.Time)
	// Replaced reports whether the program or the key of the host was replaced, so that
	// the worker is to end as soon as it has no work in hand.
	Replaced func() bool
}
