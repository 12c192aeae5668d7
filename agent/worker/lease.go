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
	// requesting means that the lease was asked for and the answer may come any
	// moment.
	requesting leaseState = iota
	// unanswered means that no answer came: the site cannot be reached.
	unanswered
	// taken means that another worker holds the lease.
	taken
	// held means that this worker holds the lease.
	held
)

// What there is to do because of the lease.
const (
	// DoWait waits until the state of the lease changes.
	DoWait Do = "wait"
	// DoTakeOver begins anew after another worker, or without a journal.
	DoTakeOver Do = "take over"
)

// allow returns what a worker may do of what its journal says that there is to
// do. away tells that another worker has held the lease since the journal's run
// was taken up, or may have.
//
// That two workers of a host never both upgrade it in one run (design.md 5,
// invariant 2) rests on this: only the worker that took up the run's prepare
// as its own and replied to it under the lease goes on to the upgrade.
//
//   - A worker takes nothing up that was on the log when the lease last came to
//     it from another worker (DoTakeOver); it replies to that with an error, and
//     so to all that follows in the same run.
//   - So two workers that both take up one prepare both had the lease before
//     the prepare was sent. The one that had it first had lost it by then,
//     without knowing: its reply to the prepare is refused with ErrTaken, and
//     from there on it is away and never comes to the upgrade.
//   - A gate that is behind may take that reply. The upgrade then bears the epoch
//     of that reply, and the worker that holds the lease in another epoch does not
//     carry it out (Journal.Receive).
//   - A worker that did come to the upgrade is therefore the only one, and may
//     finish what it has begun whoever holds the lease now. It must: a host is
//     not left half upgraded.
//
// What was begun is known from the journal alone, so a host that the site does
// not answer goes on with it (design.md 6), but takes nothing up.
func (j Journal) allow(do Do, s leaseState, away bool) Do {
	switch {
	case s == requesting:
		return DoWait
	case j.begun(do):
		return do
	case s == taken || s == unanswered && (away || do == Nothing || do == DoReply):
		return DoWait
	case away && do == DoReply && j.Action != message.Prepare:
		// The reply is true, and nobody else can give it.
		return do
	case away:
		return DoTakeOver
	}
	return do
}

// begun reports whether a step goes on with what has had an effect, or may
// have. An upgrade that is known not to have begun is not resumed but begun.
func (j Journal) begun(do Do) bool {
	switch do {
	case DoResume, DoVerify, DoRollback, DoBooted:
		return true
	case DoReboot:
		return j.Asked
	default:
		return false
	}
}

// over reports whether a worker that ends may give the lease back: nothing is
// in hand, and no command can come that only this journal allows. Between two
// steps of a run, as long as the next one may be sent, the lease is kept:
// another worker can only reply that it does not know, which fails the host for
// this run, when this one may be back in a moment.
//
// Whatever this says does no harm to invariant 2: a worker that gives the lease
// back has ended, and when it is started again it goes on from here only if
// the epoch tells that no other worker has held the lease meanwhile.
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

// leaseWait is how long a worker with work in hand waits at its start for the
// site to say who holds the lease.
const leaseWait = message.Heartbeat

// giveBackWait is how long a worker that ends waits for the site to take the
// lease back.
const giveBackWait = 5 * time.Second

// errMoved means that a call to the site was given up because the state of the
// lease has changed.
var errMoved = errors.New("the lease has changed")

// leaseTerm is a time in which the state of the lease does not change.
type leaseTerm struct {
	state leaseState
	// epoch is that of the lease, while it is held.
	epoch uint64
	// ctx ends with the term.
	ctx context.Context
	end context.CancelFunc
}

// lease is what the loop and what runs background it know of the lease.
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

// change begins a new term, if the state is one of from, or if the lease is held
// in another epoch: another worker held it meanwhile, and this one was not told.
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

// hold asks for the lease and works under it; when it is lost, again.
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
			// What was begun goes on without the site, as while it is not there.
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

// giveBack gives the lease back when this worker ends with nothing in hand, so
// that a worker that takes over need not wait until this one is silent for long
// enough. Nothing depends on it: a lease that is not given back is free some
// time later.
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

// standBy gives way to another worker and says so once.
func (w *Worker) standBy(reason error) {
	if _, changed := w.lease.change(taken, 0, requesting, unanswered, held); changed {
		w.Log.Warn("another worker works for host "+w.Host+"; standing by, and asking for the lease again every "+message.Heartbeat.String(),
			"worker", w.identity, "error", reason)
		w.Leased(false)
	}
}

// serve does what is done beside the loop, for as long as the worker holds the
// lease. It returns nil when that is over.
func (w *Worker) serve(now leaseTerm) error {
	// Nothing of this host is heard before it has a journal, so that no run
	// begins with it that it would then know nothing of.
	select {
	case <-now.ctx.Done():
		return nil
	case <-w.journaled:
	}
	w.Leased(true)
	ctx, cancel := context.WithCancelCause(now.ctx)
	defer cancel(nil)
	var background sync.WaitGroup
	for _, job := range []func(context.Context) error{w.listen, w.heartbeat, w.answerPings, w.reportVersions, w.doTasks} {
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
