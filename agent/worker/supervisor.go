package worker

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
)

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

// ErrReplaced means that the worker has ended because its program or key was replaced.
var ErrReplaced = errors.New("the program or the key of this host was replaced")

// graceOfLoop is how much longer than its limit a step of the loop may take: all is
// within it that has no limit of its own, such as a write to a slow disk.
const graceOfLoop = 2 * time.Minute

// siteWait is how long the loop waits for one answer of the site before it goes
// round and asks anew.
const siteWait = 5 * time.Minute

// promise tells the supervisor that the loop goes round within a time.
func (w *Worker) promise(within time.Duration) {
	if s := w.Supervisor; s != nil {
		s.Alive(time.Now().Add(within + graceOfLoop))
	}
}

// limitOf is how long a step of the loop may take. The calls of a strategy have limits
// of their own, and renew the promise.
func (w *Worker) limitOf(do Do) time.Duration {
	switch do {
	case DoReboot, DoAwaitReboot:
		return w.Limits.Reboot
	case DoReply, DoTakeOver:
		return siteWait
	case DoAwaitRetry:
		return w.Limits.Step
	default: // A wait, or a call of the strategy, which renews the promise.
		return w.Supervisor.Beat
	}
}

// retire returns ErrReplaced when the worker is to make room for the next one: it
// waits, no run has another command for it, and no check or hook is under way. The
// next worker finds the host as this one leaves it.
func (w *Worker) retire(do Do) error {
	s := w.Supervisor
	if s == nil {
		return nil
	}
	w.promise(w.limitOf(do))
	if waits := do == Nothing || do == DoWait; !waits || !w.journal.over(w.Now()) || w.tasks.busy() || !s.Replaced() {
		return nil
	}
	return ErrReplaced
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

// busy reports whether a check or hook is under way, or its outcome is to be sent.
func (t *tasks) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.running) > 0
}
