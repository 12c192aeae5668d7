package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// Busy tells whether a program on the host says "not now" (package busy).
type Busy interface {
	// Now returns why the host is not to be upgraded now; nil when it may be.
	Now() *message.NotNow
	// Watch calls changed when it has begun, and whenever Now may return something else
	// than before, until ctx ends or the watch fails. changed does not block for long.
	Watch(ctx context.Context, changed func()) error
}

func (w *Worker) notNow() *message.NotNow {
	if w.Busy == nil {
		return nil
	}
	return w.Busy.Now()
}

// watchBusy tells the loop and the site at once when the host becomes busy or idle, or
// gives another reason or end. Heartbeats tell it, too.
func (w *Worker) watchBusy(ctx context.Context) {
	if w.Busy == nil {
		return
	}
	var told *message.NotNow
	changed := func() {
		w.idle.Set()
		now := w.notNow()
		if now == nil && told == nil || now != nil && told != nil && now.Equal(*told) {
			return
		}
		if told = now; now == nil {
			w.Log.Info("the host is idle: it may be upgraded", "host", w.Host)
		} else {
			w.Log.Info("the host is busy: no upgrade begins", "host", w.Host, "reason", now.Reason, "until", now.Until)
		}
		if w.lease.now().state == held {
			w.sendAlive()
		}
	}
	var failing throttle.Failing
	for {
		err := w.Busy.Watch(ctx, changed)
		if ctx.Err() != nil {
			return
		}
		if failing.Due(w.Now()) {
			w.Log.Warn("cannot watch for busy leases; they are read with each heartbeat", "host", w.Host, "error", err)
		}
		if wait.Sleep(ctx, watchAgain) != nil {
			return
		}
		changed()
	}
}

// deferred returns the journal of an upgrade that has not begun and waits until the host
// is idle; false if it need not. One that failed for a reason that passes has to be resumed
// first; if that finds that nothing was done, it waits as well, and is tried anew.
func (j Journal) deferred(busy *message.NotNow) (Journal, bool) {
	if busy == nil || j.Phase != Upgrading || j.Retry.Resume {
		return j, false
	}
	j.Phase, j.Retry = Deferred, Retry{}
	return j, true
}

// begin returns the journal of a deferred upgrade that may begin now, or for which it is
// too late; false while it has to wait.
func (j Journal) begin(busy *message.NotNow, now time.Time) (Journal, bool) {
	switch {
	case !now.Before(j.NotAfter) && busy != nil:
		return j.answer("", strategy.Fail(message.Transient, fmt.Errorf("nothing was upgraded: the host was busy until not-after: %s", busy.Reason))), true
	case !now.Before(j.NotAfter):
		return j.answer("", strategy.Fail(message.Transient, fmt.Errorf("nothing was upgraded: the host was busy, and not-after has passed"))), true
	case busy != nil:
		return j, false
	}
	j.Phase = Upgrading
	return j, true
}

// awaitIdle waits until the host is idle, not-after has passed, or the lease changes. It
// looks again once in a while, because clocks may be set meanwhile.
func (w *Worker) awaitIdle(ctx context.Context, now leaseTerm) error {
	busy := w.notNow()
	if next, some := w.journal.begin(busy, w.Now()); some {
		return w.save(ctx, next)
	}
	run := w.journal.Run
	if err := w.HostLog.Progress(message.Progress{Run: run, Percent: -1, Message: message.CleanText("the upgrade waits, because the host is busy: " + busy.String())}); err != nil {
		w.Log.Debug("cannot send progress", "host", w.Host, "error", err)
	}
	waiting, end := w.waiting(now.ctx)
	defer end()
	again := time.NewTimer(min(w.journal.NotAfter.Sub(w.Now()), message.Heartbeat))
	defer again.Stop()
	select {
	case <-waiting.Done():
	case <-again.C:
	case <-w.idle:
	}
	return ctx.Err()
}
