// Package check runs the tasks of a run where they are to be run, on a host or
// at the site: it tries each check until it has passed as often as it must, or
// runs a hook with its retries, and says in words what failed.
//
// It does not decide which task is due, nor what follows from its outcome. A
// task may be run again, also while it still runs; what it runs must bear that.
package check

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"syscall"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// Runner runs tasks. Each field may be left out, and several tasks may be run
// at once.
type Runner struct {
	// Scripts is the folder of installed scripts, an absolute path. Where it is
	// empty none is run.
	Scripts string
	// Tenant is told to scripts.
	Tenant string
	// Systemctl is the program that knows of units; systemctl when empty.
	Systemctl string
	// Transport is for requests; nil is http.DefaultTransport.
	Transport http.RoundTripper
	// Log is told of each try that fails; nil is nobody.
	Log *slog.Logger

	// statfs is syscall.Statfs where nil.
	statfs func(path string, into *syscall.Statfs_t) error
	// answer is how long to wait for one; answerTime where 0.
	answer time.Duration
}

// try is one attempt at a check or a hook; nil is a success.
type try func(context.Context) error

// Run runs a task to its outcome: the checks one after the other until one
// fails, then the hook. A task of neither is well. When ctx ends first, the
// outcome tells nothing of the host and is to be dropped.
func (r *Runner) Run(ctx context.Context, t message.Task) message.Outcome {
	err := r.run(ctx, t)
	switch {
	case err == nil:
		return t.Outcome(true, "")
	case ctx.Err() != nil:
		return t.Outcome(false, "interrupted")
	default:
		return t.Outcome(false, err.Error())
	}
}

func (r *Runner) run(ctx context.Context, t message.Task) error {
	for _, c := range t.Checks {
		if err := r.check(ctx, t, c); err != nil {
			return fmt.Errorf("check %s: %w", c.Name, err)
		}
	}
	if t.Hook == nil {
		return nil
	}
	if err := r.hook(ctx, t, *t.Hook); err != nil {
		return fmt.Errorf("hook %s: %w", t.Kind, err)
	}
	return nil
}

// failed tells the log of a try.
func (r *Runner) failed(ctx context.Context, t message.Task, what string, err error) {
	if r.Log != nil {
		r.Log.InfoContext(ctx, "a try failed", "run", t.Run, "kind", t.Kind, "host", t.Host, "what", what, "error", err)
	}
}

// tries is so many of them, in words.
func tries(n int) string {
	if n == 1 {
		return "1 try"
	}
	return fmt.Sprintf("%d tries", n)
}
