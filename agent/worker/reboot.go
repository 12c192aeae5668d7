package worker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// reboot asks for the reboot that the journal holds and waits to be ended by
// it. Only a new boot id proves a reboot, so this never reports success: the
// next start does (AV-69, AV-70).
//
// The journal says that the reboot is asked for before it is, and it is never
// asked for again: a worker that is killed in between cannot know whether the
// reboot is under way, and a second one could strike the host when it is back
// at work (design.md 5, invariant 2). An ask that is lost that way costs the
// host its run.
func (w *Worker) reboot(ctx context.Context) error {
	if w.journal.Asked {
		return w.awaitReboot(ctx, "the reboot was asked for before the worker was started again")
	}
	next := w.journal
	next.Asked = true
	if err := w.save(ctx, next); err != nil {
		return err
	}
	w.At("before reboot")
	if err := w.askReboot(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return w.failReboot(ctx, fmt.Errorf("cannot reboot: %w", err))
	}
	w.At("after reboot")
	return w.awaitReboot(ctx, "the reboot was accepted")
}

func (w *Worker) askReboot(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, w.Limits.Reboot, fmt.Errorf("asking for it took longer than %s", w.Limits.Reboot))
	defer cancel()
	return overdue(limited, w.Machine.Reboot(limited))
}

// awaitReboot gives the reboot its time to end this process.
func (w *Worker) awaitReboot(ctx context.Context, asked string) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(w.Limits.Reboot):
		return w.failReboot(ctx, errors.New(asked+", yet the host was still up "+w.Limits.Reboot.String()+" later"))
	}
}

func (w *Worker) failReboot(ctx context.Context, err error) error {
	next := w.journal.After(DoReboot, 0, err, w.Now())
	w.Log.Warn("step failed", "host", w.Host, "run", next.Run, "step", DoReboot, "error", err)
	return w.save(ctx, next)
}
