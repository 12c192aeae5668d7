package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// nothingMissing returns an error if the host lacks a change of its plan: done means that
// nothing is missing, never that nothing is left to do.
func (w *Worker) nothingMissing(ctx context.Context, job strategy.Job) error {
	missing, err := w.missing(ctx, job)
	switch {
	case err != nil:
		return err
	case len(missing) > 0:
		return strategy.Fail(message.Install, lacking(missing, len(job.Plan.Changes)))
	}
	return nil
}

func (w *Worker) job() strategy.Job {
	run, failing, failedAt := w.state.Run, w.failing(w.state.Journal), w.failedAt
	w.reached.Store(0)
	return strategy.Job{
		Tenant: w.Tenant, Host: w.Host, Run: run, NotAfter: w.state.NotAfter, BootID: w.bootID,
		Progress: func(percent int, text string) {
			reached := max(w.reached.Load(), int64(percent))
			w.reached.Store(reached)
			told := message.Progress{Run: run, Percent: percent, Message: text}
			if reached <= int64(failedAt) { // A try that has come further does not fail as those before.
				told.Failing = failing
			}
			w.say(told)
		},
	}
}

// within makes one call of the strategy, bounded by the limit of an action.
func within[R any](ctx context.Context, w *Worker, what string, job strategy.Job, call func(context.Context, strategy.Job) (R, error)) (R, error) {
	w.promise(w.Limits.Action)
	limited, cancel := context.WithTimeoutCause(ctx, w.Limits.Action, fmt.Errorf("%s took longer than %s", what, w.Limits.Action))
	defer cancel()
	result, err := call(limited, job)
	return result, overdue(limited, err)
}

// overdue replaces the error of an expired limit by the limit's own text. Any
// other outcome counts however late it is known: this process may have been
// stopped while the call ended.
func overdue(limited context.Context, err error) error {
	if err != nil && errors.Is(err, limited.Err()) {
		err = context.Cause(limited)
	}
	return err
}

// lacking is the failure of a host that does not have all of its plan.
func lacking(missing []message.Change, all int) error {
	const named = 5
	names := make([]string, 0, named)
	for _, c := range missing[:min(len(missing), named)] {
		names = append(names, lack(c))
	}
	return fmt.Errorf("%d of %d changes of the plan are missing: %s; see what the upgrade printed, mend the host, then start another run",
		len(missing), all, text.ListOf(names, len(missing), named))
}

// lack says what the host has instead of a change. From is what it has.
func lack(c message.Change) string {
	switch {
	case c.To == "":
		return fmt.Sprintf("%s is not removed", c.Name)
	case c.From == "":
		return fmt.Sprintf("%s %s", c.Name, c.To)
	default:
		return fmt.Sprintf("%s %s (it is %s)", c.Name, c.To, c.From)
	}
}
