package worker

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// guarded is a host log whose lease another worker may hold.
type guarded struct {
	*fakeLog
	taken *atomic.Bool
}

func (g guarded) no() error {
	if g.taken.Load() {
		return fmt.Errorf("%w: OTHER, since noon", log.ErrTaken)
	}
	return nil
}

func (g guarded) Lease(context.Context, string) (uint64, error) { return 0, g.no() }

func (g guarded) Reply(ctx context.Context, run uint64, reply message.Reply) error {
	if err := g.no(); err != nil {
		return err
	}
	return g.fakeLog.Reply(ctx, run, reply)
}

// guard gives the lease to another worker. leased receives what the workers report about
// it.
func (r *rig) guard() (taken *atomic.Bool, leased *lockedText) {
	taken, leased = new(atomic.Bool), &lockedText{}
	taken.Store(true)
	r.change = func(o *Options) {
		o.HostLog = guarded{r.hostLog, taken}
		o.Leased = func(held bool) { _, _ = fmt.Fprintln(leased, held) }
	}
	return taken, leased
}

// TestStandby checks that a worker without the lease does nothing, says so once, and
// goes to work when the lease is free.
func TestStandby(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		taken, leased := r.guard()
		r.prepare()
		r.hostLog.ask(taskOf(10, message.BeforeHost))
		quiet := time.Now().Add(time.Minute)
		free := quiet.Add(message.Heartbeat)
		r.life(func() bool {
			if time.Now().Before(quiet) {
				return false
			}
			if taken.Load() && (r.hostLog.heartbeats() > 0 || len(r.hostLog.wanted()) == 0 || len(r.hostLog.reports()) > 0 || r.hostLog.answer(message.Prepare) != "") {
				t.Error("something was heard of a worker that stands by")
			}
			taken.Store(false)
			return r.hostLog.answer(message.Prepare) != "" && r.hostLog.heartbeats() > 0 && len(r.hostLog.wanted()) == 0
		})
		if time.Now().After(free.Add(taskEvery)) {
			t.Errorf("it goes to work %s after the lease is free", time.Since(quiet))
		}
		if got := r.hostLog.answer(message.Prepare); got != unknownPast {
			t.Errorf("what was sent before is answered %q", got)
		}
		if n := r.log.lines("level=WARN", "another worker works for host h01; standing by", "OTHER, since noon"); n != 1 {
			t.Errorf("it is told %d times, not once:\n%s", n, r.log.String())
		}
		if got := leased.String(); got != "false\ntrue\n" {
			t.Errorf("leased: %q", got)
		}
	})
}

// TestStandbyFinishes checks a worker that stands by from its start with an interrupted
// upgrade: it finishes the upgrade, does not begin it again, and replies what is true
// once it may.
func TestStandbyFinishes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.leave(upgrading())
		if err := r.host.SetFaults(map[string]string{"upgrade": "crash-after"}); err != nil {
			t.Fatal(err)
		}
		r.life(func() bool { return false })
		taken, _ := r.guard()
		r.life(func() bool {
			return r.journal().Phase == decide.Answering && r.log.lines("the reply was refused", "run=10") > 0
		})
		if j := r.journal(); !j.Away || j.Result.Outcome != message.RebootRequired {
			t.Errorf("the journal is %+v", j)
		}
		taken.Store(false)
		expect(r, message.Upgrade, message.RebootRequired)
		if n := r.effects("upgrade"); n != 1 {
			t.Errorf("the host was upgraded %d times", n)
		}
	})
}

// TestLeaseRefused checks that a worker that may not ask for the lease ends.
func TestLeaseRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.hostLog.refused["lease"] = true
		if err := r.run(); errorText(err) != "cannot ask for this host's lease: lease: refused by the site" {
			t.Errorf("the worker ends with %v", err)
		}
	})
}

// TestHeartbeat checks what a heartbeat says about its worker.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.change = func(o *Options) { o.Role, o.Labels, o.Version = "edge", map[string]string{"ring": "0"}, "1.2.3" }
		r.leave(prepared())
		r.life(func() bool { return r.hostLog.heartbeats() > 1 })
		name, err := readIdentity(filepath.Join(r.dir, "state", "identity.json"), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := r.hostLog.last
		if got.Worker != name || got.Role != "edge" || got.Labels["ring"] != "0" || got.AgentVersion != "1.2.3" {
			t.Errorf("it tells %+v", got)
		}
	})
}

// TestLeaseInAnotherEpoch checks that a worker that asks for the lease that it believes
// to hold, and gets it in another epoch, begins anew: another worker held it meanwhile.
// In the same epoch nothing changes.
func TestLeaseInAnotherEpoch(t *testing.T) {
	t.Parallel()
	s := lease{run: t.Context()}
	s.term.state = decide.Requesting
	s.term.ctx, s.term.end = context.WithCancel(t.Context())
	first, changed := s.change(decide.Held, 1, decide.Requesting)
	if !changed || first.epoch != 1 {
		t.Fatalf("the first lease is %+v, changed: %t", first, changed)
	}
	if _, changed := s.change(decide.Held, 1, decide.Requesting); changed || first.ctx.Err() != nil {
		t.Errorf("the same epoch changes something: %t, %v", changed, first.ctx.Err())
	}
	if now, changed := s.change(decide.Held, 3, decide.Requesting); !changed || now.epoch != 3 || first.ctx.Err() == nil {
		t.Errorf("another epoch changes: %t; the lease is %+v, what was done in the first one ends with %v", changed, now, first.ctx.Err())
	}
}

// foreign is a host log of a site with which the worker has no protocol in common.
type foreign struct {
	*fakeLog
	upgraded *atomic.Bool
}

func (f foreign) Lease(ctx context.Context, worker string) (uint64, error) {
	if !f.upgraded.Load() {
		return 0, fmt.Errorf("lease: %w: 2 and 3", log.ErrProtocol)
	}
	return f.fakeLog.Lease(ctx, worker)
}

// TestSiteOfAnotherProtocol checks that a worker finishes what it has begun while
// it has no protocol in common with its site, says so now and then, and goes to
// work once the site is upgraded.
func TestSiteOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.leave(upgrading())
		if err := r.host.SetFaults(map[string]string{"upgrade": "crash-after"}); err != nil {
			t.Fatal(err)
		}
		r.life(func() bool { return false })
		heard := r.hostLog.heartbeats()
		site := foreign{r.hostLog, new(atomic.Bool)}
		r.change = func(o *Options) { o.HostLog = site }
		until := time.Now().Add(25 * time.Minute)
		r.life(func() bool {
			return r.journal().Phase == decide.Answering && time.Now().After(until)
		})
		if got := r.hostLog.answer(message.Upgrade); got != "" || r.hostLog.heartbeats() > heard {
			t.Errorf("the site hears %q and %d heartbeats", got, r.hostLog.heartbeats()-heard)
		}
		if n := r.log.lines("level=ERROR", "the site speaks another protocol: 2 and 3"); n != 3 {
			t.Errorf("in 25 minutes it is told %d times:\n%s", n, r.log.String())
		}
		site.upgraded.Store(true)
		expect(r, message.Upgrade, message.RebootRequired)
		if n := r.effects("upgrade"); n != 1 {
			t.Errorf("the host was upgraded %d times", n)
		}
	})
}
