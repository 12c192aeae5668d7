package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// leaseWait is how long a worker with an action in progress waits at its start for
// the site to say which worker holds the lease.
const leaseWait = message.Heartbeat

// giveBackWait is how long a worker that ends waits for the site to take the
// lease back.
const giveBackWait = 5 * time.Second

// hold asks for the lease and works under it. When the lease is lost, hold asks
// again.
func (w *Worker) hold(ctx context.Context) error {
	wait := time.AfterFunc(leaseWait, func() { w.lease.change(decide.Unanswered, 0, decide.Requesting) })
	defer wait.Stop()
	for {
		now, err := w.acquire(ctx)
		if err != nil {
			return err
		}
		if err := w.serve(now); err != nil {
			return err
		}
		if err := w.await(ctx); err != nil {
			return err
		}
	}
}

// acquire asks for the lease until the worker holds it.
func (w *Worker) acquire(ctx context.Context) (leaseTerm, error) {
	var failing throttle.Failing
	for {
		w.At("before lease")
		epoch, err := w.HostLog.Lease(ctx, w.identity)
		if err == nil {
			w.At("after lease")
			now, _ := w.lease.change(decide.Held, epoch, decide.Requesting, decide.Unanswered, decide.Taken)
			return now, nil
		}
		switch {
		case errors.Is(err, log.ErrTaken):
			w.standBy(err)
		case errors.Is(err, log.ErrProtocol):
			// An action that has begun is finished without the site, as if the site
			// could not be reached.
			w.lease.change(decide.Unanswered, 0, decide.Requesting)
			if failing.Due(w.Now()) {
				w.Log.Error("cannot work for the site; asking again every "+message.Heartbeat.String(), "host", w.Host, "error", err)
			}
		default:
			return leaseTerm{}, fmt.Errorf("cannot ask for this host's lease: %w", err)
		}
		if err := w.await(ctx); err != nil {
			return leaseTerm{}, err
		}
	}
}

// serve runs the jobs beside the loop for as long as the worker holds the lease.
// When the lease is lost it returns nil.
func (w *Worker) serve(now leaseTerm) error {
	// The host is silent until it has a journal. Otherwise a run could begin with
	// a host whose first journal then starts after the run's prepare.
	select {
	case <-now.ctx.Done():
		return nil
	case <-w.journaled:
	}
	w.Leased(true)
	ctx, cancel := context.WithCancelCause(now.ctx)
	defer cancel(nil)
	var background sync.WaitGroup
	jobs := []func(context.Context) error{w.listen, w.heartbeat, w.answerPings, w.answerAsks, w.reportVersions, w.watchVersions, w.sendOutputs, w.sendPlans, w.sendOffers, w.doTasks}
	for _, s := range w.Sources {
		send, watch := w.sendSource(s)
		jobs = append(jobs, send, watch)
	}
	for _, job := range jobs {
		background.Go(func() {
			if err := job(ctx); err != nil {
				cancel(err)
			}
		})
	}
	background.Wait()
	if now.ctx.Err() != nil {
		return nil
	}
	if err := context.Cause(ctx); !errors.Is(err, log.ErrTaken) {
		return err
	}
	w.standBy(context.Cause(ctx))
	return nil
}

// await waits until it is time to ask for the lease again.
func (w *Worker) await(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.HostLog.Vacated():
	case <-time.After(message.Heartbeat):
	}
	return nil
}

// yield translates the error of a call to the site: errMoved if the lease was lost
// during the call or the call reports that.
func (w *Worker) yield(now leaseTerm, err error) error {
	if now.ctx.Err() == nil && errors.Is(err, log.ErrTaken) {
		w.standBy(err)
	}
	if now.ctx.Err() != nil {
		return errMoved
	}
	return err
}

// giveBack gives the lease back when this worker ends with no action in progress, so
// that the next worker need not wait until this worker is silent. Nothing depends
// on it: a lease that is not given back is free after message.Silence.
func (w *Worker) giveBack(ctx context.Context) {
	if w.lease.now().state != decide.Held || !w.state.Over(w.Now()) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackWait)
	defer cancel()
	w.At("before give-back")
	if err := w.HostLog.GiveBack(ctx); err != nil {
		w.Log.Info("the lease is not given back; another worker can have it once this one is silent for long enough", "host", w.Host, "silence", message.Silence, "error", err)
		return
	}
	w.At("after give-back")
}

func (w *Worker) listen(ctx context.Context) error {
	return w.HostLog.Commands(ctx, func(r message.Record) {
		if !w.commands.put(r) {
			w.ignoredCount.Add(1)
		}
	})
}

// standBy notes that another worker holds the lease, and logs that once.
func (w *Worker) standBy(reason error) {
	if _, changed := w.lease.change(decide.Taken, 0, decide.Requesting, decide.Unanswered, decide.Held); changed {
		w.Log.Warn("another worker works for host "+w.Host+"; standing by, and asking for the lease again every "+message.Heartbeat.String(),
			"worker", w.identity, "error", reason)
		w.Leased(false)
	}
}
