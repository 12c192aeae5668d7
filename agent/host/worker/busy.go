package worker

import (
	"context"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

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
		if w.lease.now().state == decide.Held {
			w.sendAlive()
		}
	}
	w.follow(ctx, "busy leases", w.Busy.Watch, changed)
}

// follow watches until ctx ends. While it cannot, it looks from time to time.
func (w *Worker) follow(ctx context.Context, what string, watch func(ctx context.Context, changed func()) error, changed func()) {
	var failing throttle.Failing
	for {
		err := watch(ctx, changed)
		if ctx.Err() != nil {
			return
		}
		if failing.Due(w.Now()) {
			w.Log.Warn("cannot watch "+what+"; they are read every minute", "host", w.Host, "error", err)
		}
		if wait.Sleep(ctx, watchAgain) != nil {
			return
		}
		changed()
	}
}

// awaitIdle waits until the host is idle, not-after has passed, or the lease changes. It
// looks again once in a while, because clocks may be set meanwhile.
func (w *Worker) awaitIdle(ctx context.Context, now leaseTerm) error {
	busy := w.notNow()
	if busy == nil {
		return nil // Just now.
	}
	w.say(message.Progress{Run: w.state.Run, Percent: -1, Message: message.CleanText("the upgrade waits, because the host is busy " + busy.String())})
	waiting, end := w.waiting(now.ctx)
	defer end()
	again := time.NewTimer(min(w.state.NotAfter.Sub(w.Now()), message.Heartbeat))
	defer again.Stop()
	select {
	case <-waiting.Done():
	case <-again.C:
	case <-w.idle:
	}
	return ctx.Err()
}
