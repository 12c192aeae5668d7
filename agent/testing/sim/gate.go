package sim

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// siteGate is the gate of one life of a site.
type siteGate struct {
	*gate.Gate
	p     *process
	link  *link
	begun time.Time
	// heard is when this gate last accepted something of a process of a worker.
	// The world's lock guards it.
	heard map[holder]time.Time
}

// holder is a process of a worker of a host.
type holder struct{ host, worker, incarnation string }

// startGate starts the gate of a life of a site.
func (s *site) startGate(ctx context.Context, p *process) {
	w := s.w
	l := siteLog{w, s, p}
	g := &siteGate{p: p, link: s.link, begun: time.Now(), heard: map[holder]time.Time{}}
	g.Gate = gate.New(gate.Options{Tenant: tenant, Log: l, Keeper: siteKeeper{siteStore{w.store, w, p}, l, g}, Push: s.push, Secrets: strongbox{}})
	g.Warn = func(err error) {
		w.note("the gate of %s follows anew: %v", p.name, err)
		w.count("gates that follow anew")
	}
	s.mu.Lock()
	g.Stored = s.c.Stored
	s.gate = g
	s.mu.Unlock()
	go func() {
		if err := g.Run(ctx); ctx.Err() == nil {
			w.note("the gate of %s has ended: %v", p.name, err)
			w.count("gates ended by an error")
			p.die("its gate has ended")
		}
	}()
}

// serving returns the gate of a site, if it answers calls now.
func (s *site) serving() *siteGate {
	s.mu.Lock()
	g := s.gate
	s.mu.Unlock()
	if g == nil || g.p.dead() || g.p.paused.Load() || !s.link.up() {
		return nil
	}
	select {
	case <-g.Ready():
		return g
	default:
		return nil
	}
}

// reconnected tells the gate of a site that hosts can reach it again.
func (s *site) reconnected() {
	if g := s.serving(); g != nil {
		g.Reconnected()
	}
}

// anyGate picks a gate that answers calls; nil when none does.
func (w *World) anyGate(whose string) *siteGate {
	var gates []*siteGate
	for _, s := range w.sites {
		if g := s.serving(); g != nil {
			gates = append(gates, g)
		}
	}
	if len(gates) == 0 {
		return nil
	}
	return gates[w.rng.n("gate/"+whose, len(gates))]
}

// accepted notes that a gate has accepted what arrived at a time.
func (w *World) accepted(g *siteGate, h holder, arrived time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g.heard[h] = arrived
}

// fresh is within what time a gate follows the leases, where nothing keeps it from
// that.
const fresh = time.Minute

// judgeHolder holds that a gate listens to nobody who lost the lease before the gate
// could but know.
func (w *World) judgeHolder(g *siteGate, h holder) {
	key := log.Token(h.host)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.strength["lease"] != 0 || g.link.upFor() <= fresh || time.Since(g.begun) <= fresh || time.Since(w.log.begun) <= fresh || time.Since(w.log.passed[key]) <= fresh {
		return
	}
	body, _, err := w.log.leases.Lease(context.Background(), tenant, key)
	var now gate.Lease
	if err == nil && body != nil && format.Lease.Decode(body, &now) == nil && (now.Worker != h.worker || now.Incarnation != h.incarnation || now.Vacant) {
		w.violated("a gate listens to worker %s of %s, process %s, %s after the lease passed to worker %s, process %s",
			h.worker, h.host, h.incarnation, time.Since(w.log.passed[key]), now.Worker, now.Incarnation)
	}
}

// push sends what a gate pushes to a host, or to all hosts.
func (s *site) push(host string, body []byte) {
	w := s.w
	if !s.link.up() {
		return
	}
	var p gate.Push
	w.must(json.Unmarshal(body, &p))
	if p.Command != nil {
		w.mu.Lock()
		w.pushed[p.Command.Seq] = *p.Command
		w.mu.Unlock()
	}
	for _, m := range w.inOrder {
		switch {
		case host == "" || m.host == host:
			w.pushTo(m.host, p, body)
		case p.Command != nil && w.fault("replay: another's command", m.name):
			w.pushTo(m.host, p, body)
		}
		if p.Lease == nil {
			w.replay(m.host)
		}
	}
}

// pushTo delivers a push. If it is lost, so was the connection, and the workers
// learn of that after a while.
func (w *World) pushTo(host string, p gate.Push, body []byte) {
	what := "push"
	if p.Lease != nil {
		what = "lease push"
	}
	if w.post(what, host, func(c *hostConn) { c.client.Pushed(body) }) && p.Lease == nil {
		w.after(w.rng.span("gap/"+host, time.Millisecond, time.Minute), func() { w.reconnect(host) })
	}
}

// replay delivers an old command once more.
func (w *World) replay(host string) {
	if !w.fault("replay: old command", host) {
		return
	}
	old := w.oldCommands(host)
	if len(old) == 0 {
		return
	}
	p := gate.Push{Command: &old[w.rng.n("replay which/"+host, len(old))]}
	body, err := json.Marshal(p)
	w.must(err)
	w.after(w.rng.span("replay when/"+host, time.Millisecond, time.Minute), func() { w.pushTo(host, p, body) })
}

// oldCommands returns the prepares on the log, whole, and the commands that gates have pushed to a host, as
// they pushed them: the log does not have all that a gate tells of a command.
func (w *World) oldCommands(host string) (old []gate.Command) {
	all := w.log.All()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range all {
		switch r := &all[i]; r.Kind {
		case message.CommandAll:
			old = append(old, gate.Command{Kind: r.Kind, Seq: r.Seq, Time: r.Time, Run: r.Run, Epoch: r.Epoch, Checks: r.Checks, Release: r.Release, Rollback: r.Rollback, Body: r.Body})
		case message.CommandHost:
			if c, was := w.pushed[r.Seq]; was && r.Host == host {
				old = append(old, c)
			}
		case message.EventRecord, message.ReplyRecord:
		}
	}
	return old
}

// siteKeeper is the store as the gate of one site sees it.
type siteKeeper struct {
	siteStore
	l siteLog
	g *siteGate
}

var _ gate.Keeper = siteKeeper{}

// errUnderWay is what the server says when another write of the entry is under
// way.
var errUnderWay = errors.New("sim: another write is under way")

// PutLease implements gate.Keeper.
func (k siteKeeper) PutLease(ctx context.Context, _, key string, body []byte, base uint64) (uint64, error) {
	k.judge(key, body, base)
	w, name := k.w, k.l.s.name
	if w.fault("lease write: another is under way", name) {
		return 0, errUnderWay
	}
	return k.l.append(ctx, "lease write", func(s *server) (uint64, error) {
		if err := w.writable(); err != nil {
			return 0, err
		}
		revision, err := s.leases.PutLease(ctx, tenant, key, body, base)
		if err == nil {
			s.passed[key] = time.Now()
			w.note("lease of %s, revision %d: %s", key, revision, body)
			w.count("leases written")
		}
		return revision, err
	})
}

// judge holds that a gate takes a lease from nobody whom it heard lately, and that
// the epoch grows whenever the lease passes to another worker, or back to a process
// that was replaced, and only then.
func (k siteKeeper) judge(key string, body []byte, base uint64) {
	w := k.w
	before, revision, err := w.log.leases.Lease(context.Background(), tenant, key)
	if err != nil || revision != base {
		w.count("lease writes that come too late")
		return
	}
	var old, next gate.Lease
	w.must(format.Lease.Decode(body, &next))
	if before == nil || format.Lease.Decode(before, &old) != nil {
		return
	}
	host, _ := log.Host(key)
	another, clone := old.Worker != next.Worker, false
	for _, incarnation := range old.Replaced {
		clone = clone || !another && incarnation == next.Incarnation
	}
	switch passes := another || clone; {
	case passes != (next.Epoch > old.Epoch) || next.Epoch < old.Epoch:
		w.violated("the lease of %s passes from %+v to %+v", host, old, next)
	case old.Vacant && another:
		w.count("leases that another worker has after they were given back")
	case next.Vacant:
		w.count("leases given back")
	case old.Vacant && !another:
		w.count("leases that come back to the worker that gave them back")
	case passes && clone:
		w.count("leases taken over by a cloned machine")
	case passes:
		w.count("leases taken over")
	default:
		w.count("leases renewed by a process that was started again")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := k.g.heard[holder{host, old.Worker, old.Incarnation}]; !old.Vacant && (another || clone) && time.Since(at) < message.Silence {
		w.violated("the lease of %s is taken from worker %s, process %s, which this gate heard %s ago", host, old.Worker, old.Incarnation, time.Since(at))
	}
}

// Lease implements gate.Keeper.
func (k siteKeeper) Lease(ctx context.Context, _, key string) ([]byte, uint64, error) {
	if err := k.l.call(ctx); err != nil {
		return nil, 0, err
	}
	return k.w.log.leases.Lease(ctx, tenant, key)
}

// WatchLeases implements gate.Keeper. A watch may be behind, and skip what a lease
// was meanwhile, or deaf for a while, and tells so afterwards.
func (k siteKeeper) WatchLeases(ctx context.Context, _ string, see func(key string, body []byte, revision uint64)) error {
	w, name := k.w, k.l.s.name
	for first, since := true, uint64(0); ; {
		delay := w.rng.span("lease watch/"+name, 100*time.Microsecond, 10*time.Millisecond)
		deaf := w.fault("gate: deaf to leases", name)
		if w.fault("lease watch: behind", name) || deaf {
			delay = w.rng.span("lease watch behind/"+name, time.Second, 2*time.Minute)
		}
		if err := errors.Join(sleep(ctx, delay), k.l.s.link.wait(ctx)); err != nil {
			return err
		}
		if deaf && !first {
			return log.ErrStale
		}
		changed, more := w.log.leases.Since(since)
		for _, e := range changed {
			see(e.Key, e.Body, e.Revision)
			since = e.Revision
		}
		if first {
			see("", nil, 0)
		}
		first = false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-more:
		}
	}
}

// PutReport implements gate.Keeper.
func (k siteKeeper) PutReport(ctx context.Context, tenant, key string, r report.Report) error {
	if err := k.l.call(ctx); err != nil {
		return err
	}
	return k.Store.PutReport(ctx, tenant, key, r)
}
