package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// site is a log in memory behind the real gate, for several workers of h01.
type site struct {
	log    *memory.Log
	keeper *memory.Keeper
	gate   *gate.Gate
	mu     sync.Mutex
	conns  map[*conn]bool
}

func newSite(t *testing.T) *site {
	s := &site{log: memory.New(), keeper: memory.NewKeeper(), conns: map[*conn]bool{}}
	s.gate = gate.New(gate.Options{Tenant: "acme", Log: s.log, Keeper: s.keeper, Push: s.push})
	go func() { _ = s.gate.Run(t.Context()) }()
	<-s.gate.Ready()
	return s
}

// push delivers what the gate pushes, but tells no worker that it has lost the
// lease: that this is lost is the worst that can happen.
func (s *site) push(_ string, body []byte) {
	var p gate.Push
	if json.Unmarshal(body, &p) != nil || p.Lease != nil && !p.Lease.Vacant {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if p.Lease == nil || !c.unaware() {
			c.client.Pushed(body)
		}
	}
}

func (s *site) send(run uint64, c message.Command) uint64 {
	r := message.Record{Kind: message.CommandHost, Host: c.Host, Run: run, Body: c.Encode()}
	if c.Action == message.Prepare {
		r.Kind = message.CommandAll
	}
	seq, _ := s.log.Add(r)
	return seq
}

func (s *site) answer(run uint64, action message.Action) string {
	for _, r := range s.log.All() {
		if r.Kind == message.ReplyRecord && r.Run == run && r.Action == action {
			reply, err := message.DecodeReply(r.Body)
			if err != nil {
				return err.Error()
			}
			return reply.Result.String()
		}
	}
	return ""
}

// answersNow are all replies, for a test that fails.
func (s *site) answersNow() (all []string) {
	for _, r := range s.log.All() {
		if r.Kind == message.ReplyRecord {
			all = append(all, fmt.Sprintf("run %d: %s", r.Run, r.Body))
		}
	}
	return all
}

// lease is the host's lease as it is kept, and its revision.
func (s *site) lease() (l gate.Lease, revision uint64) {
	body, revision, _ := s.keeper.Lease(context.Background(), "acme", "h01")
	_ = format.Lease.Decode(body, &l)
	return l, revision
}

// give hands the lease to a process of a worker, as if its holder were silent.
func (s *site) give(worker, incarnation string) {
	l, revision := s.lease()
	if l.Worker == worker && !l.Vacant {
		return
	}
	next := gate.Lease{Worker: worker, Incarnation: incarnation, Epoch: l.Epoch, Since: time.Now()}
	if l.Worker != worker {
		next.Epoch++
	}
	body, _ := format.Lease.Encode(next)
	_, _ = s.keeper.PutLease(context.Background(), "acme", "h01", body, revision)
}

// who returns the worker that holds the lease; empty when the lease was given back.
func (s *site) who() string {
	if l, _ := s.lease(); !l.Vacant {
		return l.Worker
	}
	return ""
}

func (s *site) epochNow() uint64 {
	l, _ := s.lease()
	return l.Epoch
}

// conn is the connection of one process of a worker. It still receives commands when its
// worker has lost the lease, as from a gate that is behind.
type conn struct {
	*site
	client *gate.Client
	mu     sync.Mutex
	// killed means that the worker ends without giving its lease back, hangs that the
	// site does not answer that call.
	killed, hangs bool
	// granted means that the lease was granted to this process once, told that the
	// process knows that it has lost the lease.
	granted, told bool
}

var incarnations struct {
	sync.Mutex
	last int
}

func (s *site) connect() *conn {
	incarnations.Lock()
	incarnations.last++
	name := fmt.Sprint("process-", incarnations.last)
	incarnations.Unlock()
	c := &conn{site: s}
	c.client = gate.NewClient(gate.ClientOptions{Host: "h01", Incarnation: name}, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = true
	return c
}

// Call implements gate.Conn.
func (c *conn) Call(ctx context.Context, q gate.Request) ([]byte, error) {
	c.mu.Lock()
	killed, hangs := c.killed, c.hangs
	c.mu.Unlock()
	switch {
	case q.Verb[0] == "give-back" && hangs:
		<-ctx.Done()
		return nil, ctx.Err()
	case q.Verb[0] == "give-back" && killed:
		return nil, errors.New("killed")
	case q.Verb[0] == "newest" && c.unaware():
		l, _ := c.lease()
		q.Worker, q.Incarnation = l.Worker, l.Incarnation
	}
	r := c.gate.Answer(ctx, "h01", q)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.Taken:
		c.told = true
	case r.Lease != nil:
		c.granted, c.told = true, false
	}
	return r.Encode(), nil
}

// Send implements gate.Conn.
func (c *conn) Send(kind gate.Telemetry, incarnation string, body []byte) error {
	if a, err := message.DecodeAlive(body); kind == gate.AliveTelemetry && err == nil {
		c.gate.Heard("h01", a.Worker, incarnation)
	}
	return nil
}

// Connected implements gate.Conn.
func (c *conn) Connected() bool { return true }

// end notes how the worker ends.
func (c *conn) end(killed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = killed
}

func (c *conn) hang() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hangs = true
}

// unaware reports whether its worker has lost the lease and does not know: it
// does not ask for the lease, so no gate grants it again.
func (c *conn) unaware() bool {
	l, _ := c.lease()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.granted && l.Incarnation != c.client.Incarnation && !c.told
}
