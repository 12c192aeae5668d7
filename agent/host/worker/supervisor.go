package worker

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
)

// ErrReplaced means that the worker has ended because its program or key was replaced.
var ErrReplaced = errors.New("the program or the key of this host was replaced")

// graceOfLoop is how much longer than its limit an action of the loop may take: all is
// within it that has no limit of its own, such as a write to a slow disk.
const graceOfLoop = 2 * time.Minute

// siteWait is how long the loop waits for one answer of the site before it goes
// round and asks anew.
const siteWait = 5 * time.Minute

// promiseAction promises that the next action does not hang.
func (w *Worker) promiseAction(do decide.Do) {
	if w.Supervisor != nil {
		w.promise(w.limitOf(do))
	}
}

// limitOf is how long an action of the loop may take. The calls of a strategy have limits
// of their own, and renew the promise.
func (w *Worker) limitOf(do decide.Do) time.Duration {
	switch do {
	case decide.DoReboot, decide.DoAwaitReboot:
		return w.Limits.Reboot
	case decide.DoReply, decide.DoTakeOver:
		return siteWait
	case decide.DoAwaitRetry:
		return w.Limits.Action
	default: // A wait, or a call of the strategy, which renews the promise.
		return w.Supervisor.Beat
	}
}

// waiting returns the context for a wait of the loop. With a supervisor it ends after a
// beat.
func (w *Worker) waiting(ctx context.Context) (limited context.Context, end context.CancelFunc) {
	if w.Supervisor == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, w.Supervisor.Beat)
}

// bounded asks the site something. With a supervisor the loop goes round when the site
// does not answer for long, and asks anew: what it asks can be asked twice.
func (w *Worker) bounded(ctx context.Context, ask func(context.Context) error) error {
	if w.Supervisor == nil {
		return ask(ctx)
	}
	limited, end := context.WithTimeout(ctx, siteWait)
	defer end()
	err := ask(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil && !errors.Is(err, log.ErrTaken) {
		return errMoved
	}
	return err
}

// promise tells the supervisor that the loop goes round within a time.
func (w *Worker) promise(within time.Duration) {
	if s := w.Supervisor; s != nil {
		s.Alive(time.Now().Add(within + graceOfLoop))
	}
}
