package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// supervised has the next workers of a rig supervised. replaced is whether their program
// was replaced; broken counts the promises that were not kept.
func (r *rig) supervised(replaced *atomic.Bool) (broken *atomic.Int32) {
	broken = &atomic.Int32{}
	r.change = func(o *Options) {
		var until atomic.Pointer[time.Time]
		o.Supervisor = &Supervisor{
			Beat: time.Minute, Replaced: replaced.Load,
			Alive: func(next time.Time) {
				if last := until.Swap(&next); last != nil && time.Now().After(*last) {
					broken.Add(1)
				}
			},
		}
	}
	return broken
}

// TestPromises checks that an idle worker, a worker without a site and a worker in a run
// each go round when they promised to.
func TestPromises(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		broken := r.supervised(&atomic.Bool{})
		ended := make(chan error, 1)
		ctx, stop := context.WithCancel(r.t.Context())
		w, err := Open(ctx, r.options())
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- errors.Join(w.Run(ctx), w.Close()) }()
		time.Sleep(3 * time.Hour)
		r.prepare()
		time.Sleep(time.Minute)
		r.command(12, message.Upgrade)
		time.Sleep(3 * time.Hour)
		if got := r.hostLog.answer(message.Upgrade); got != string(message.Done) && got != string(message.RebootRequired) {
			t.Errorf("the upgrade is answered %q", got)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := broken.Load(); n > 0 {
			t.Errorf("%d promises were not kept", n)
		}
	})
}

// TestMakesRoom checks that a worker whose program was replaced stays while a run has
// another command for it, and ends within a beat after that.
func TestMakesRoom(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		var replaced atomic.Bool
		r.supervised(&replaced)
		ended := make(chan error, 1)
		w, err := Open(r.t.Context(), r.options())
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- errors.Join(w.Run(r.t.Context()), w.Close()) }()
		time.Sleep(time.Minute)
		r.prepare()
		time.Sleep(time.Minute)
		if got := r.hostLog.answer(message.Prepare); got != string(message.Done) {
			t.Fatalf("the prepare is answered %q", got)
		}
		replaced.Store(true)
		time.Sleep(30 * time.Minute) // The run goes on until an hour after its prepare.
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("it ends between the commands of a run: %v", err)
		default:
		}
		time.Sleep(32 * time.Minute)
		synctest.Wait()
		select {
		case err := <-ended:
			if !errors.Is(err, ErrReplaced) {
				t.Errorf("it ends with %v", err)
			}
		default:
			t.Error("it does not end after the run")
		}
	})
}
