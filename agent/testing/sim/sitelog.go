package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/oracle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// siteLog is the log as the controller and the gate of one site see it.
type siteLog struct {
	w *World
	s *site
	p *process
}

var (
	_ log.Log        = siteLog{}
	_ log.HostEvents = siteLog{}
	_ gate.Log       = siteLog{}
)

// appended is the result of an append.
type appended struct {
	seq uint64
	err error
}

// Append implements log.Log.
func (l siteLog) Append(ctx context.Context, r message.Record, expect uint64) (uint64, error) {
	return l.append(ctx, "append", func(s *server) (uint64, error) { return s.Append(ctx, r, expect) })
}

// AppendNext implements log.Log.
func (l siteLog) AppendNext(ctx context.Context, r message.Record, expect, last uint64) (uint64, error) {
	return l.append(ctx, "append", func(s *server) (uint64, error) { return s.AppendNext(ctx, r, expect, last) })
}

// AppendReply implements gate.Log.
func (l siteLog) AppendReply(ctx context.Context, r message.Record) error {
	_, err := l.append(ctx, "append", func(s *server) (uint64, error) { return 0, s.AppendReply(ctx, r) })
	return err
}

// append lets a write travel to the server, and the acknowledgement back.
func (l siteLog) append(ctx context.Context, what string, write func(*server) (uint64, error)) (uint64, error) {
	if l.p.dead() {
		return 0, errDead
	}
	w, name, sent := l.w, l.s.name, oracle.Sending{At: l.s.clock.now(), Knows: l.s.knows(), Frozen: l.p.freeze(), Gathering: l.s.isGathering(), Skips: l.p.skips.known(), Withdrawn: l.p.withdrawn.known()}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	done := make(chan appended, 1)
	if arrives, ok := l.departs(what); ok {
		w.after(arrives, func() {
			seq, err := w.write(sent, write)
			switch {
			case errors.Is(err, log.ErrBehind):
				w.count("append refused: behind")
			case errors.Is(err, log.ErrAnswered):
				w.count("reply refused: answered")
			case errors.Is(err, memory.ErrConflict):
				w.count("lease write refused: the lease has changed")
			case errors.Is(err, errDown):
				return
			}
			if back, ok := l.returns(what, name); ok {
				w.after(back, func() { done <- appended{seq, err} })
			}
		})
	}
	select {
	case a := <-done:
		return a.seq, a.err
	case <-ctx.Done():
		return 0, fmt.Errorf("cannot write: %w: %w", errNoReply, ctx.Err())
	}
}

// departs tells how long a write takes to the server; false when it is lost.
func (l siteLog) departs(what string) (time.Duration, bool) {
	w, name := l.w, l.s.name
	switch {
	case !l.s.link.up() || w.fault(what+": request lost", name):
		return 0, false
	case w.fault(what+": late", name):
		return w.rng.span(what+" late/"+name, callLimit, 4*callLimit), true
	}
	return w.rng.span(what+"/"+name, 100*time.Microsecond, 20*time.Millisecond), true
}

// returns tells how long the acknowledgement of a write takes; false when it is
// lost.
func (l siteLog) returns(what, name string) (time.Duration, bool) {
	w := l.w
	switch {
	case w.fault(what+": ack lost", name) || w.fault(what+": hangs", name) || !l.s.link.up():
		return 0, false
	case w.fault(what+": acknowledged late", name):
		return w.rng.span(what+" ack late/"+name, time.Second, 2*callLimit), true
	}
	return w.rng.span(what+" ack/"+name, 100*time.Microsecond, 20*time.Millisecond), true
}

// Follow implements log.Log.
func (l siteLog) Follow(ctx context.Context, from uint64, deliver func(message.Record)) error {
	return l.follow(ctx, from, l.known(deliver), func() error {
		switch {
		case l.w.fault("follow: breaks", l.s.name):
			return errBroke
		case l.w.fault("follow: stale", l.s.name):
			return log.ErrStale
		}
		return nil
	})
}

// known notes what the controller is given.
func (l siteLog) known(deliver func(message.Record)) func(message.Record) {
	return func(r message.Record) {
		l.s.give(r.Seq)
		deliver(r)
	}
}

func (s *site) give(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.After(s.givenAt) {
		s.known, s.givenAt = s.given, now
	}
	s.given = seq
}

// knows is the last record that the controller surely knows: what it was given at this
// moment may wait behind what it does.
func (s *site) knows() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().After(s.givenAt) {
		return s.given
	}
	return s.known
}

// answered notes that a question was answered just now. If the controller's loop has waited for
// it, the loop knows the records up to knew, those from before the question, and no more.
func (s *site) answered(knew uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.givenAt = knew, time.Now()
}

// FollowCommands implements gate.Log. The follower may be deaf for a while, and
// is told so afterwards.
func (l siteLog) FollowCommands(ctx context.Context, from uint64, deliver func(message.Record)) error {
	return l.follow(ctx, from, func(r message.Record) {
		if r.Kind != message.ReplyRecord {
			deliver(r)
		}
	}, func() error {
		if !l.w.fault("gate: deaf to commands", l.s.name) {
			return nil
		}
		if err := sleep(ctx, l.w.rng.span("deaf/"+l.s.name, time.Second, time.Minute)); err != nil {
			return err
		}
		return log.ErrStale
	})
}

// follow delivers records, after a while. fails decides before each delivery
// whether it ends.
func (l siteLog) follow(ctx context.Context, from uint64, deliver func(message.Record), fails func() error) error {
	w := l.w
	for next := from; ; {
		if w.isDown() {
			if err := sleep(ctx, time.Second); err != nil {
				return err
			}
			continue
		}
		news, grew := w.log.Since(next)
		if len(news) == 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-grew:
			}
		}
		if err := l.delay(ctx); err != nil {
			return err
		}
		if err := fails(); err != nil {
			return err
		}
		for _, r := range news {
			deliver(r)
			next = r.Seq + 1
		}
	}
}

// delay lets the time pass that records take to a follower.
func (l siteLog) delay(ctx context.Context) error {
	w, name := l.w, l.s.name
	d := w.rng.span("follow/"+name, 50*time.Microsecond, 2*time.Millisecond)
	if w.fault("follow: stalls", name) {
		d = w.rng.span("follow stall/"+name, time.Second, 30*time.Second)
	}
	if err := sleep(ctx, d); err != nil {
		return err
	}
	return l.s.link.wait(ctx)
}

// call lets a question travel to the server and back.
func (l siteLog) call(ctx context.Context) error {
	switch {
	case l.p.dead():
		return errDead
	case !l.s.link.up() || l.w.fault("log: asked in vain", l.s.name):
		if err := sleep(ctx, callLimit); err != nil {
			return err
		}
		return errNoReply
	}
	if err := sleep(ctx, l.w.rng.span("log call/"+l.s.name, 100*time.Microsecond, 10*time.Millisecond)); err != nil {
		return err
	}
	if l.w.isDown() {
		return errDown
	}
	return nil
}

// Read implements log.Log.
func (l siteLog) Read(ctx context.Context, from, to uint64, deliver func(message.Record)) error {
	if err := l.call(ctx); err != nil {
		return err
	}
	return l.w.log.Read(ctx, from, to, l.known(deliver))
}

// Last implements log.Log.
func (l siteLog) Last(ctx context.Context) (uint64, error) {
	knew := l.s.knows()
	defer func() { l.s.answered(knew) }()
	if err := l.call(ctx); err != nil {
		return 0, err
	}
	return l.w.log.Last(ctx)
}

// First implements log.Log.
func (l siteLog) First(ctx context.Context) (uint64, error) {
	if err := l.call(ctx); err != nil {
		return 0, err
	}
	return l.w.log.First(ctx)
}

// Trim implements log.Log.
func (l siteLog) Trim(ctx context.Context, upTo uint64) error {
	if err := l.call(ctx); err != nil {
		return err
	}
	err := l.w.log.Trim(ctx, upTo)
	if err == nil {
		l.w.count("log trimmed")
	}
	return err
}

// Identity implements gate.Log.
func (l siteLog) Identity() string { return l.w.log.Identity() }

// NewestCommand implements gate.Log.
func (l siteLog) NewestCommand(ctx context.Context) (uint64, error) {
	if err := l.call(ctx); err != nil {
		return 0, err
	}
	return l.w.log.NewestCommand(ctx)
}

// OldestPrepare implements gate.Log.
func (l siteLog) OldestPrepare(ctx context.Context) (uint64, error) {
	if err := l.call(ctx); err != nil {
		return 0, err
	}
	return l.w.log.OldestPrepare(ctx)
}

// Listen implements log.HostEvents.
func (l siteLog) Listen(ctx context.Context, to log.Listener) error {
	w := l.w
	w.mu.Lock()
	l.s.listener = &to
	w.mu.Unlock()
	w.pingAll()
	<-ctx.Done()
	w.mu.Lock()
	if l.s.listener == &to {
		l.s.listener = nil
	}
	w.mu.Unlock()
	return ctx.Err()
}

// Addressed implements log.HostEvents.
func (l siteLog) Addressed(t message.Task) (message.Task, bool) {
	l.s.mu.Lock()
	g := l.s.gate
	l.s.mu.Unlock()
	return g.Addressed(t)
}

// Ask implements log.HostEvents.
func (l siteLog) Ask(host string, a log.Ask) error {
	if l.p.dead() {
		return errDead
	}
	if l.s.link.up() {
		l.w.post("ask", host, func(c *hostConn) { c.client.Pushed(gate.EncodeAsk(a)) })
	}
	return nil
}

// Send implements log.HostEvents.
func (l siteLog) Send(t message.Task) error {
	if l.p.dead() {
		return errDead
	}
	if l.s.link.up() {
		l.w.post("task", t.Host, func(c *hostConn) { c.client.Tasked(t.Encode()) })
	}
	return nil
}
