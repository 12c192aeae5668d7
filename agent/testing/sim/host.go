package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// hostConn is the connection of one process of a worker to the gates, over the
// simulated network.
type hostConn struct {
	w      *World
	m      *machine
	p      *process
	client *gate.Client
}

var _ gate.Conn = (*hostConn)(nil)

// connect opens the connection of a process.
func (w *World) connect(m *machine, p *process) *hostConn {
	c := &hostConn{w: w, m: m, p: p}
	w.mu.Lock()
	defer w.mu.Unlock()
	m.lives++
	c.client = gate.NewClient(gate.ClientOptions{
		Host: m.host, Incarnation: fmt.Sprintf("%s, life %d", p.name, m.lives),
		Jitter: func(limit time.Duration) time.Duration { return w.rng.span("pause/"+p.name, 0, limit) },
	}, c)
	w.conns[m.host] = append(w.conns[m.host], c)
	return c
}

// hangUp closes it.
func (c *hostConn) hangUp() {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	var left []*hostConn
	for _, other := range c.w.conns[c.m.host] {
		if other != c {
			left = append(left, other)
		}
	}
	c.w.conns[c.m.host] = left
}

// up reports whether the process and the log's server can reach each other.
func (c *hostConn) up() bool { return !c.w.isDown() && c.m.link.up() && !c.p.dead() }

// Connected implements gate.Conn.
func (c *hostConn) Connected() bool { return c.up() }

// Call implements gate.Conn: any of the gates answers, or two if the call is
// doubled.
func (c *hostConn) Call(ctx context.Context, q gate.Request) ([]byte, error) {
	if c.p.dead() {
		return nil, errDead
	}
	w, name := c.w, c.m.name
	if q.Verb[0] == "reply" {
		w.sent(c, q)
	}
	done := make(chan []byte, 3)
	if c.up() {
		w.transit("call", name, func() {
			if g := w.anyGate(name); g != nil && !w.isDown() && c.m.link.up() {
				c.answer(g, q, done)
			}
		})
	}
	select {
	case body := <-done:
		return body, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errNoReply, ctx.Err())
	}
}

// answer has a gate answer a call, and lets the response travel back.
func (c *hostConn) answer(g *siteGate, q gate.Request, done chan<- []byte) {
	w := c.w
	ctx, cancel := context.WithTimeout(w.ctx, gate.CallTimeout)
	defer cancel()
	arrived := time.Now()
	r := g.Answer(ctx, c.m.host, q)
	if !r.Taken {
		w.accepted(g, holder{c.m.host, q.Worker, q.Incarnation}, arrived)
		if q.Verb[0] != "lease" && q.Verb[0] != "give-back" && r.Error == "" {
			w.judgeHolder(g, holder{c.m.host, q.Worker, q.Incarnation})
		}
	}
	c.counted(q.Verb[0], r)
	if g.p.dead() || w.fault("call: answer lost", c.m.name) {
		return
	}
	body := r.Encode()
	w.after(w.rng.span("answer/"+c.m.name, 100*time.Microsecond, 20*time.Millisecond), func() { done <- body })
}

// counted counts what a gate says.
func (c *hostConn) counted(verb string, r gate.Response) {
	w := c.w
	switch {
	case verb == "reply" && strings.Contains(r.Error, "has no command"):
		w.count("reply refused: of another run")
	case verb == "report" && r.Refused:
		w.count("reports refused")
	case verb == "give-back" && (r.Refused || r.Taken):
		w.count("leases given back late")
	case r.Taken && strings.Contains(r.Error, "is a clone of the other"):
		w.count("cloned machines refused")
	case r.Taken:
		w.count("workers refused that do not hold the lease")
	}
}

// Send implements gate.Conn: the telemetry reaches each site that it can.
func (c *hostConn) Send(kind gate.Telemetry, incarnation string, body []byte) error {
	if c.p.dead() {
		return errDead
	}
	if !c.up() || c.p.paused.Load() {
		return nil
	}
	what := "heartbeat"
	if kind == gate.OutcomeTelemetry {
		what = "outcome"
	}
	w := c.w
	if o, err := message.DecodeOutcome(body); kind == gate.OutcomeTelemetry && err == nil && o.OK && o.Kind == message.AfterHost {
		w.mu.Lock()
		c.m.toldPassed(c.p.name, o.Run)
		w.mu.Unlock()
	}
	w.transit(what, c.m.name, func() {
		said, err := readTelemetry(kind, body)
		if err != nil {
			return
		}
		for _, s := range w.sites {
			w.mu.Lock()
			to := s.listener
			w.mu.Unlock()
			if to != nil && s.link.up() && !w.isDown() && c.m.link.up() {
				c.hear(s, kind, incarnation, said, *to)
			}
		}
	})
	return nil
}

// telemetry is what a host says besides the log: one of these.
type telemetry struct {
	alive    message.Alive
	progress message.Progress
	outcome  message.Outcome
}

// readTelemetry reads what a host says, once for all sites.
func readTelemetry(kind gate.Telemetry, body []byte) (said telemetry, err error) {
	switch kind {
	case gate.AliveTelemetry:
		said.alive, err = message.DecodeAlive(body)
	case gate.ProgressTelemetry:
		said.progress, err = message.DecodeProgress(body)
	case gate.OutcomeTelemetry:
		said.outcome, err = message.DecodeOutcome(body)
	}
	return said, err
}

// hear delivers telemetry to a site, as jetstream does.
func (c *hostConn) hear(s *site, kind gate.Telemetry, incarnation string, said telemetry, to log.Listener) {
	w, host := c.w, c.m.host
	switch kind {
	case gate.AliveTelemetry:
		g := s.serving()
		if g == nil || !g.Heard(host, said.alive.Worker, incarnation) {
			return
		}
		w.accepted(g, holder{host, said.alive.Worker, incarnation}, time.Now())
		to.Alive(host, said.alive)
	case gate.ProgressTelemetry:
		to.Progress(host, said.progress)
	case gate.OutcomeTelemetry:
		if said.outcome.Host != host {
			w.count("outcome of another host dropped")
			return
		}
		to.Outcome(host, said.outcome)
	}
}

// sent tells the oracle that a worker sends a reply.
func (w *World) sent(c *hostConn, q gate.Request) {
	if c.m.traits.byzantine || q.Outcome == message.Unknown {
		return
	}
	var run uint64
	_, bad := fmt.Sscan(q.Verb[1], &run)
	reply, err := message.DecodeReply(q.Body)
	if bad != nil || err != nil {
		w.must(errors.Join(errors.New("a worker sends a reply that cannot be read"), bad, err))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.oracle.Sent(c.m.host, c.m.name, run, reply)
	c.m.toldDone(run, reply)
}
