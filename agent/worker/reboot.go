package worker

import (
	"context"
	"fmt"
	"time"
)

// reboot asks for the reboot that the journal holds and waits to be ended by
// it. Only a new boot id proves a reboot, so this never reports success: the
// next start does (AV-69, AV-70).
func (w *Worker) reboot(ctx context.Context) error {
	next := w.journal
	next.Attempts++
	if next.Attempts > maxReboots {
		return w.save(next.After(DoReboot, 0, fmt.Errorf("the host did not reboot though asked %d times", maxReboots), w.Now()))
	}
	if err := w.save(next); err != nil {
		return err
	}
	w.At("before reboot")
	if err := w.Machine.Reboot(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return w.save(w.journal.After(DoReboot, 0, fmt.Errorf("cannot reboot: %w", err), w.Now()))
	}
	w.At("after reboot")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(w.Limits.Reboot):
		return w.save(w.journal.After(DoReboot, 0, fmt.Errorf("the reboot was accepted, yet the host was still up after %s", w.Limits.Reboot), w.Now()))
	}
}
