// Package check executes the tasks of a run, on a host or at the site: it tries
// each check until it has passed often enough, and runs hooks with their retries.
//
// It decides whether a check has passed. It never decides which task is due nor
// what follows from the outcome. A task may run more than once, also concurrently;
// scripts and endpoints must be idempotent.
package check

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Runner runs tasks. All fields are optional. It is safe for concurrent use.
type Runner struct {
	// Scripts is the folder of installed scripts, an absolute path. If it is
	// empty, no script runs.
	Scripts string
	// State is the folder with the baseline that checks compare with; without one
	// there is no baseline.
	State string
	// Outputs is the folder in which scripts find the outputs of earlier steps, while they run; it is
	// this runner's alone. The system's folder of temporary files if empty.
	Outputs string
	// Tenant is passed to scripts.
	Tenant string
	// Systemctl is the path of systemctl(1); "systemctl" if empty.
	Systemctl string
	// Local says to which local addresses checks and hooks over the network may connect: at the
	// site a tenant chooses the address, and what listens there may trust the machine. Nil, as
	// on a host, allows all.
	Local *dial.Rule
	// Transport is the transport of requests; nil means one that follows Local.
	Transport http.RoundTripper
	// Hosts returns the hosts of an environment, at the site; nil elsewhere.
	Hosts func(ctx context.Context, environment string) ([]message.Present, error)
	// Log logs each failed try; it may be nil.
	Log *slog.Logger

	// statfs is syscall.Statfs if nil.
	statfs func(path string, into *syscall.Statfs_t) error
	// loadavg is /proc/loadavg if empty, processors runtime.NumCPU() if 0, and adjtimex
	// unix.Adjtimex if nil.
	loadavg    string
	processors int
	adjtimex   func(*unix.Timex) (state int, err error)
	// answer is the timeout of a try over the network; answerTime if 0.
	answer time.Duration
}

// try is one try of a check or hook; nil means success.
type try func(context.Context) error

// Run runs a task and returns its outcome: the checks one after the other until
// one fails, then the hook. A task without either succeeds. Checks before a run are all
// run, at once. If ctx ends first, the outcome says nothing about the host; drop it.
func (r *Runner) Run(ctx context.Context, t message.Task) message.Outcome {
	if t.Kind == message.Start {
		return r.runAll(ctx, t)
	}
	gives, err := r.run(ctx, t)
	switch {
	case err == nil && len(gives) > 0:
		o := t.Outcome(true, "")
		o.Outputs = &message.Outputs{Values: gives}
		return o
	case err == nil:
		return t.Outcome(true, "")
	case ctx.Err() != nil:
		return t.Outcome(false, "interrupted")
	default:
		return t.Outcome(false, err.Error())
	}
}

func (r *Runner) run(ctx context.Context, t message.Task) (gives map[string]string, err error) {
	for _, c := range t.Checks {
		if err := r.check(ctx, t, c); err != nil {
			return nil, fmt.Errorf("check %s: %w", c.Name, err)
		}
	}
	if t.Hook == nil {
		return nil, nil
	}
	if err := r.hook(ctx, t, *t.Hook, &gives); err != nil {
		if t.Kind.OfStage() {
			return nil, err
		}
		return nil, fmt.Errorf("hook %s: %w", t.Kind, err)
	}
	return gives, nil
}

// Ask tries a check once, which is none of a task, and returns why it failed; nil when it passed.
func (r *Runner) Ask(ctx context.Context, c rollout.Check) error {
	attempt, err := r.probe(message.Task{}, c)
	if err != nil {
		return err
	}
	return attempt(ctx)
}

// runAll runs all checks of a task at once, and returns how each came out.
func (r *Runner) runAll(ctx context.Context, t message.Task) message.Outcome {
	failed := make([]error, len(t.Checks))
	var running sync.WaitGroup
	for i, c := range t.Checks {
		running.Go(func() { failed[i] = r.check(ctx, t, c) })
	}
	running.Wait()
	if ctx.Err() != nil {
		return t.Outcome(false, "interrupted")
	}
	return t.Checked(failed)
}

// failed logs a failed try.
func (r *Runner) failed(ctx context.Context, t message.Task, what string, err error) {
	if r.Log != nil {
		r.Log.InfoContext(ctx, "a try failed", "run", t.Run, "kind", t.Kind, "host", t.Host, "what", what, "error", err)
	}
}

// tries returns a number of tries in words.
func tries(n int) string { return text.Count(n, "try", "tries") }

// minInterval is the shortest wait between two tries. Without it an interval of 0
// would keep a processor busy.
const minInterval = 100 * time.Millisecond

// series counts the tries of a check.
type series struct {
	tried, inRow int
	// last is the error of the last try that failed by itself; that of a try which the end
	// of the time cut off when there is no other.
	last error
}

func (s *series) count(err error, cutOff bool) {
	s.tried++
	s.inRow++
	if err != nil {
		s.inRow = 0
	}
	if err != nil && (s.last == nil || !cutOff) {
		s.last = err
	}
}

// check tries a check until it has passed often enough in a row. It fails as soon
// as there is no time for another try.
func (r *Runner) check(ctx context.Context, t message.Task, c rollout.Check) error {
	probe, err := r.probe(t, c)
	if err != nil {
		return err
	}
	end := time.Now().Add(c.Timeout.Duration())
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	interval := max(minInterval, c.Interval.Duration())
	var s series
	for {
		err := probe(ctx)
		s.count(err, ctx.Err() != nil)
		if err != nil {
			r.failed(ctx, t, "check "+c.Name, err)
		}
		if s.inRow >= c.Passes && err == nil {
			return nil
		}
		if time.Until(end) <= interval || wait.Sleep(ctx, interval) != nil {
			return s.tooFew(c)
		}
	}
}

// tooFew returns the error of a check that has not passed often enough.
func (s series) tooFew(c rollout.Check) error {
	said := "no try failed"
	if s.last != nil {
		said = "the last failed try: " + s.last.Error()
	}
	return fmt.Errorf("passed %d of %d times in a row within %s, in %s; %s",
		s.inRow, max(1, c.Passes), c.Timeout.Duration(), tries(s.tried), said)
}

// hook runs a hook until it succeeds or no retry is left.
func (r *Runner) hook(ctx context.Context, t message.Task, h rollout.Hook, gives *map[string]string) error {
	attempt, err := r.attempt(t, h, gives)
	if err != nil {
		return err
	}
	for tried := 1; ; tried++ {
		err := within(ctx, h.Timeout.Duration(), attempt)
		if err == nil {
			return nil
		}
		r.failed(ctx, t, "hook", err)
		if tried > h.Retried() || wait.Sleep(ctx, h.RetryInterval.Duration()) != nil {
			return fmt.Errorf("%s failed; the last try: %w", tries(tried), err)
		}
	}
}

// attempt returns the try of a hook. An error means that the hook can never succeed
// here.
func (r *Runner) attempt(t message.Task, h rollout.Hook, gives *map[string]string) (try, error) {
	switch h.Type {
	case rollout.Exec:
		return r.script(t, h.Script, h.Args, gives)
	case rollout.HTTP:
		return func(ctx context.Context) error { return r.call(ctx, t, h) }, nil
	default:
		return nil, fmt.Errorf("the type %q is unknown to this agent; update it", h.Type)
	}
}

func within(ctx context.Context, limit time.Duration, attempt try) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return attempt(ctx)
}
