package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// seatPatience is how long a worker with work in hand waits at its start for
// the site to say whose the seat is.
const seatPatience = message.Heartbeat

// leavePatience is how long a worker that ends waits for the site to take its
// seat back.
const leavePatience = 5 * time.Second

// errMoved means that a call to the site was given up because the worker
// stands otherwise by now.
var errMoved = errors.New("the seat has changed")

// seating is how the worker stands, for as long as it does.
type seating struct {
	standing standing
	// tenure is the number that the site gives to it; 0 when it gives none.
	tenure uint64
	// ctx ends when the worker stands otherwise.
	ctx context.Context
	end context.CancelFunc
}

// seat is what the loop and what runs beside it know of the seat.
type seat struct {
	mu  sync.Mutex
	run context.Context
	is  seating
}

func newSeat(run context.Context) *seat {
	s := &seat{run: run}
	s.is.ctx, s.is.end = context.WithCancel(run)
	return s
}

func (s *seat) now() seating {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.is
}

// change makes the worker stand otherwise, if it stands as one of from, or has
// the seat in another tenure: somebody else had it, and it was not told.
func (s *seat) change(to standing, tenure uint64, from ...standing) (now seating, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = to == held && s.is.standing == held && s.is.tenure != tenure
	for _, f := range from {
		changed = changed || s.is.standing == f
	}
	if changed {
		s.is.end()
		s.is = seating{standing: to, tenure: tenure}
		s.is.ctx, s.is.end = context.WithCancel(s.run)
	}
	return s.is, changed
}

// hold asks for the seat and works in it; when it is lost, again.
func (w *Worker) hold(ctx context.Context) error {
	patience := time.AfterFunc(seatPatience, func() { w.seat.change(unheard, 0, asking) })
	defer patience.Stop()
	for {
		now, err := w.sit(ctx)
		if err != nil {
			return err
		}
		if err := w.attend(now); err != nil {
			return err
		}
		if err := w.await(ctx); err != nil {
			return err
		}
	}
}

// sit asks for the seat until the worker has it.
func (w *Worker) sit(ctx context.Context) (seating, error) {
	for {
		w.At("before seat")
		err := w.Station.Seat(ctx, w.identity)
		if err == nil {
			w.At("after seat")
			now, _ := w.seat.change(held, w.tenure(), asking, unheard, taken)
			return now, nil
		}
		if !errors.Is(err, log.ErrTaken) {
			return seating{}, fmt.Errorf("cannot ask for this host's seat: %w", err)
		}
		w.standBy(err)
		if err := w.await(ctx); err != nil {
			return seating{}, err
		}
	}
}

// await waits until it is time to ask for the seat again.
func (w *Worker) await(ctx context.Context) error {
	var left <-chan struct{}
	if tells, ok := w.Station.(log.Tenured); ok {
		left = tells.Left()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-left:
	case <-time.After(message.Heartbeat):
	}
	return nil
}

// leave gives the seat back when this worker ends with nothing in hand, so that
// one that comes in its place need not wait until it is silent for long enough.
// Nothing depends on it: a seat that is not given back is free some time later.
func (w *Worker) leave(ctx context.Context) {
	counts, ok := w.Station.(log.Tenured)
	if !ok || w.seat.now().standing != held || !w.journal.over(w.Now()) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leavePatience)
	defer cancel()
	w.At("before leave")
	if err := counts.Leave(ctx); err != nil {
		w.Log.Info("the seat is not given back; another worker can have it once this one is silent for long enough", "host", w.Host, "silence", message.Silence, "error", err)
		return
	}
	w.At("after leave")
}

// tenure is the number of the seat that Seat gave, from a site that counts.
func (w *Worker) tenure() uint64 {
	if counts, ok := w.Station.(log.Tenured); ok {
		return counts.Tenure()
	}
	return 0
}

// standBy gives way to another worker and says so once.
func (w *Worker) standBy(reason error) {
	if _, changed := w.seat.change(taken, 0, asking, unheard, held); changed {
		w.Log.Warn("another worker works for host "+w.Host+"; standing by, and asking for the seat again every "+message.Heartbeat.String(),
			"worker", w.identity, "error", reason)
		w.Seated(false)
	}
}

// attend does what is done beside the loop, for as long as the worker has the
// seat. It returns nil when that is over.
func (w *Worker) attend(now seating) error {
	// Nothing of this host is heard before it has a journal, so that no run
	// begins with it that it would then know nothing of.
	select {
	case <-now.ctx.Done():
		return nil
	case <-w.born:
	}
	w.Seated(true)
	ctx, cancel := context.WithCancelCause(now.ctx)
	defer cancel(nil)
	var beside sync.WaitGroup
	for _, job := range []func(context.Context) error{w.listen, w.heartbeat, w.answerAsks, w.reportVersions, w.doTasks} {
		beside.Go(func() {
			if err := job(ctx); err != nil {
				cancel(err)
			}
		})
	}
	beside.Wait()
	if now.ctx.Err() != nil {
		return nil
	}
	if err := context.Cause(ctx); !errors.Is(err, log.ErrTaken) {
		return err
	}
	w.standBy(context.Cause(ctx))
	return nil
}
