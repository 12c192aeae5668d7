package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/throttle"
)

// leaseState is what a worker knows of the host's one lease (AV-15).
type leaseState int

const (
	// requesting means that the worker has asked for the lease and the response
	// may come at any moment.
	requesting leaseState = iota
	// unanswered means that the site has not responded: it cannot be reached.
	unanswered
	// taken means that another worker holds the lease.
	taken
	// held means that this worker holds the lease.
	held
)

// The steps that only the lease calls for.
const (
	// DoWait waits until the state of the lease changes.
	DoWait Do = "wait"
	// DoTakeOver writes the first journal of a host that has none, or a new
	// journal after another worker has held the lease.
	DoTakeOver Do = "take over"
)

// allow returns the step that a worker may take, given the next step of its
// journal. away means that another worker has held the lease since this worker
// received the prepare of the journal's run, or may have held it.
//
// This function keeps two workers of a host from both upgrading it in one run
// (design.md 5, invariant 2): only the worker that has received the run's prepare
// and replied to it under the lease executes the upgrade.
//
//   - A worker that gets the lease from another worker executes no command that
//     was on the log by then (DoTakeOver). It replies to that command, and to all
//     later commands of the same run, with an error.
//   - If two workers both execute one prepare, both therefore had the lease before
//     the prepare was sent. The earlier holder has lost the lease without knowing:
//     its reply to the prepare is refused with ErrTaken. From then on it is away,
//     and does not execute the upgrade.
//   - A gate that is behind may accept that reply. The upgrade then has the epoch
//     of that reply, and the worker that holds the lease in another epoch does not
//     execute it (Journal.Receive).
//   - A worker that has begun the upgrade is therefore the only worker that has,
//     and finishes the upgrade even if another worker holds the lease now: a host
//     is not left half upgraded.
//
// The journal alone says what was begun. A host therefore finishes its step while
// the site cannot be reached (design.md 6), but begins no other.
func (j Journal) allow(do Do, s leaseState, away bool) Do {
	switch {
	case s == requesting:
		return DoWait
	case j.begun(do):
		return do
	case do == DoReboot && j.Reboot != NotAsked && (s == taken || away):
		// The machine may have been asked. To ask again is for the worker of the
		// host alone.
		return DoAwaitReboot
	case s == taken || s == unanswered && (away || do == Nothing || do == DoReply):
		return DoWait
	case away && do == DoReply && j.Action != message.Prepare:
		// The reply is true, and no other worker can give it.
		return do
	case away:
		return DoTakeOver
	}
	return do
}

// begun reports whether a step continues work that has had an effect, or may have
// had one. DoUpgrade is not such a step: it begins an upgrade. Nor is DoReboot, but for
// the reboot of a rollback.
func (j Journal) begun(do Do) bool {
	switch do {
	case DoResume, DoVerify, DoRollback, DoAwaitReboot, DoBooted:
		return true
	case DoAwaitRetry:
		return j.Phase != Preparing
	case DoReboot: // It ends a rollback that was begun.
		return j.Back == BackReboots && j.Reboot == NotAsked
	default:
		return false
	}
}

// over reports whether a worker that ends may give the lease back: no step is in
// progress, and the run has no further command for this journal. Between two
// commands of a run the worker keeps the lease, as long as the next command may
// be sent. Another worker could only reply that it does not know what was done,
// which fails the host in this run, while this worker may be back in a moment.
//
// Invariant 2 does not depend on this answer: a worker that gives the lease back
// has ended. When it is started again it continues this journal only if the epoch
// of the lease shows that no other worker has held the lease in between.
func (j Journal) over(now time.Time) bool {
	switch j.Phase {
	case Idle:
		return true
	case Answered:
		next := j.Action != message.Reboot && j.Result == permits(after(j.Action))
		return !next || !now.Before(j.NotAfter)
	default:
		return false
	}
}

// after returns the step that comes after an action.
func after(a message.Action) message.Action {
	if a == message.Prepare {
		return message.Upgrade
	}
	return message.Reboot
}

// leaseWait is how long a worker with a step in progress waits at its start for
// the site to say which worker holds the lease.
const leaseWait = message.Heartbeat

// giveBackWait is how long a worker that ends waits for the site to take the
// lease back.
const giveBackWait = 5 * time.Second

// errMoved means that a call to the site was cancelled because the state of the
// lease has changed.
var errMoved = errors.New("the lease has changed")

// leaseTerm is a time in which the state of the lease does not change.
type leaseTerm struct {
	state leaseState
	// epoch is the epoch of the lease while this worker holds it.
	epoch uint64
	// ctx ends with the term.
	ctx context.Context
	end context.CancelFunc
}

// lease is the state of the lease. The loop and the jobs beside it share it.
type lease struct {
	mu  sync.Mutex
	run context.Context
	is  leaseTerm
}

func newLease(run context.Context) *lease {
	s := &lease{run: run}
	s.is.ctx, s.is.end = context.WithCancel(run)
	return s
}

func (s *lease) now() leaseTerm {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.is
}

// change begins a new term if the current state is in from, or if this worker holds
// the lease in another epoch: then another worker held the lease in between, and
// this worker did not notice.
func (s *lease) change(to leaseState, epoch uint64, from ...leaseState) (now leaseTerm, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = to == held && s.is.state == held && s.is.epoch != epoch
	for _, f := range from {
		changed = changed || s.is.state == f
	}
	if changed {
		s.is.end()
		s.is = leaseTerm{state: to, epoch: epoch}
		s.is.ctx, s.is.end = context.WithCancel(s.run)
	}
	return s.is, changed
}

// hold asks for the lease and works under it. When the lease is lost, hold asks
// again.
func (w *Worker) hold(ctx context.Context) error {
	wait := time.AfterFunc(leaseWait, func() { w.lease.change(unanswered, 0, requesting) })
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
			now, _ := w.lease.change(held, epoch, requesting, unanswered, taken)
			return now, nil
		}
		switch {
		case errors.Is(err, log.ErrTaken):
			w.standBy(err)
		case errors.Is(err, log.ErrProtocol):
			// A step that has begun is finished without the site, as if the site
			// could not be reached.
			w.lease.change(unanswered, 0, requesting)
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

// giveBack gives the lease back when this worker ends with no step in progress, so
// that the next worker need not wait until this worker is silent. Nothing depends
// on it: a lease that is not given back is free after message.Silence.
func (w *Worker) giveBack(ctx context.Context) {
	if w.lease.now().state != held || !w.journal.over(w.Now()) {
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

// standBy notes that another worker holds the lease, and logs that once.
func (w *Worker) standBy(reason error) {
	if _, changed := w.lease.change(taken, 0, requesting, unanswered, held); changed {
		w.Log.Warn("another worker works for host "+w.Host+"; standing by, and asking for the lease again every "+message.Heartbeat.String(),
			"worker", w.identity, "error", reason)
		w.Leased(false)
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
	for _, job := range []func(context.Context) error{w.listen, w.heartbeat, w.answerPings, w.reportVersions, w.watchVersions, w.sendOutputs, w.sendPlans, w.sendOffers, w.sendInventory, w.watchInventory, w.doTasks} {
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
