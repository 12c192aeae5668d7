package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// rebooting is the journal of a host that is to reboot; now is its boot.
func rebooting(r *rig, state decide.RebootState) decide.Journal {
	boot, err := r.host.BootID()
	if err != nil {
		r.t.Fatal(err)
	}
	return decide.Journal{Run: 10, NotAfter: time.Now().Add(time.Hour), Seq: 12, Action: message.Reboot, Phase: decide.Rebooting, BootID: boot, Reboot: state}
}

// rebooter is a machine with another way to reboot.
type rebooter struct {
	Machine
	reboot func(ctx context.Context) error
}

func (s rebooter) Reboot(ctx context.Context, _ strategy.Job) error { return s.reboot(ctx) }

// TestReboot checks that a worker asks for a reboot once, and once more if the worker
// before it cannot have known whether it asked, and that the host replies in any case.
func TestReboot(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	accept := func(context.Context) error { return nil }
	refuse := func(ctx context.Context) error { <-ctx.Done(); return errors.New("a user is logged in") }
	for name, c := range map[string]struct {
		before decide.RebootState
		away   bool
		// over means that not-after has passed.
		over   bool
		reboot func(context.Context) error
		asks   int
		want   string
	}{
		"the command hangs":                      {decide.NotAsked, false, false, hang, 1, "cannot reboot: asking for it took longer than 1m0s"},
		"refused as its time ends":               {decide.NotAsked, false, false, refuse, 1, "cannot reboot: a user is logged in"},
		"accepted, and nothing happens":          {decide.NotAsked, false, false, accept, 1, "the reboot was accepted, yet the host was still up 1m0s later"},
		"interrupted, asked for once more":       {decide.Asked, false, false, accept, 1, "the reboot was accepted, yet the host was still up 1m0s later"},
		"interrupted twice":                      {decide.AskedAgain, false, false, accept, 0, "the reboot was asked for before the worker was started again, yet the host was still up 1m0s later"},
		"interrupted after it was accepted":      {decide.Accepted, false, false, accept, 0, "the reboot was accepted, yet the host was still up 1m0s later"},
		"interrupted, and the run may be over":   {decide.Asked, false, true, accept, 0, "the reboot was asked for before the worker was started again, yet the host was still up 1m0s later"},
		"interrupted, and another worker worked": {decide.Asked, true, false, accept, 0, "the reboot was asked for before the worker was started again, yet the host was still up 1m0s later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				asks := 0
				r.change = func(o *Options) {
					o.Machine = rebooter{o.Machine, func(ctx context.Context) error {
						asks++
						if got := r.journal().Reboot; got != decide.Asked && got != decide.AskedAgain {
							t.Errorf("it is asked for, and the journal says %q", got)
						}
						return c.reboot(ctx)
					}}
				}
				left := rebooting(r, c.before)
				left.Away = c.away
				if c.over {
					left.NotAfter = time.Now()
				}
				r.leave(left)
				begin := time.Now()
				expect(r, message.Reboot, c.want)
				// In a bubble nothing but the wait itself takes time.
				if took := time.Since(begin).Truncate(time.Minute); took != time.Minute {
					t.Errorf("it is answered after %s", took)
				}
				if asks != c.asks {
					t.Errorf("the reboot was asked for %d times, not %d", asks, c.asks)
				}
			})
		})
	}
}

// TestMissedRebootAnywhere kills the worker before and after it notes that it is too late
// to ask for a reboot, which the simulation hardly ever comes to: the reboot is answered
// once, with the reason, and never asked for.
func TestMissedRebootAnywhere(t *testing.T) {
	t.Parallel()
	for label, kills := range map[string]int{"no label": 0, "before miss reboot": 1, "after miss reboot": 1} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				left := rebooting(r, decide.NotAsked)
				left.NotAfter = time.Now()
				r.leave(left)
				r.dieAt, r.visit = label, 1
				expect(r, message.Reboot, "the worker was interrupted before it asked for the reboot, and not-after has passed")
				if n := r.effects("reboot"); n != 0 {
					t.Errorf("the reboot was asked for %d times", n)
				}
				if n := r.visits["before miss reboot"]; n != 1+kills {
					t.Errorf("the worker came to it %d times, with %d kills", n, kills)
				}
			})
		})
	}
}

// TestRebootUnderWay checks that a worker that is restarted before the reboot happens
// waits for the reboot and then reports it.
func TestRebootUnderWay(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		wait := rebooting(r, decide.Accepted)
		r.leave(wait)
		soon := time.Now().Add(30 * time.Second)
		r.life(func() bool { return time.Now().After(soon) })
		if got := r.journal(); got.Phase != decide.Rebooting || len(r.hostLog.replies) > 0 {
			t.Fatalf("it did not wait: %+v", got)
		}
		if err := r.host.Boot(r.t.Context()); err != nil {
			t.Fatal(err)
		}
		r.life(func() bool { return r.hostLog.answer(message.Reboot) != "" })
		if n := r.effects("reboot"); n != 0 {
			t.Errorf("the reboot was asked for %d times more", n)
		}
	})
}
