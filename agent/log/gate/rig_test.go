package gate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// rig is a log and a store in memory, any number of gates over them, and clients that
// call the gate that the test chooses.
type rig struct {
	t       *testing.T
	log     *memory.Log
	keeper  *slowKeeper
	mu      sync.Mutex
	clients []*gate.Client
	// warned are the refusals that the gates have told.
	warned []string
}

// inBubble plays with a rig in virtual time.
func inBubble(t *testing.T, play func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		play(t, &rig{t: t, log: memory.New(), keeper: &slowKeeper{Keeper: memory.NewKeeper()}})
	})
}

// slowKeeper is a store whose writes may take time, whose reads may fail, and whose
// watches may be behind.
type slowKeeper struct {
	*memory.Keeper
	mu sync.Mutex
	// slow is how long a write takes, lost whether the writer is told of an error
	// after it, unread the error of reads, and behind is closed once watches go on.
	slow   time.Duration
	lost   bool
	unread error
	behind chan struct{}
}

func (k *slowKeeper) Lease(ctx context.Context, tenant, key string) ([]byte, uint64, error) {
	k.mu.Lock()
	unread := k.unread
	k.mu.Unlock()
	if unread != nil {
		return nil, 0, unread
	}
	return k.Keeper.Lease(ctx, tenant, key)
}

func (k *slowKeeper) PutLease(ctx context.Context, tenant, key string, body []byte, base uint64) (uint64, error) {
	k.mu.Lock()
	slow, lost := k.slow, k.lost
	k.mu.Unlock()
	time.Sleep(slow)
	revision, err := k.Keeper.PutLease(ctx, tenant, key, body, base)
	if err == nil && lost {
		return 0, errors.New("no acknowledgement")
	}
	return revision, err
}

func (k *slowKeeper) WatchLeases(ctx context.Context, tenant string, see func(string, []byte, uint64)) error {
	return k.Keeper.WatchLeases(ctx, tenant, func(key string, body []byte, revision uint64) {
		k.mu.Lock()
		behind := k.behind
		k.mu.Unlock()
		if behind != nil && key != "" {
			<-behind
		}
		see(key, body, revision)
	})
}

// set changes how the store is.
func (k *slowKeeper) set(f func(k *slowKeeper)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k)
}

// gate starts a gate, over this log or another one.
func (r *rig) gate(over gate.Log) *gate.Gate {
	r.t.Helper()
	g := gate.New(gate.Options{Tenant: "acme", Log: over, Keeper: r.keeper, Push: func(host string, body []byte) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, c := range r.clients {
			if host == "" || host == c.Host {
				c.Pushed(body)
			}
		}
	}, Refused: func(host string, kind message.WarningKind, why string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.warned = append(r.warned, fmt.Sprintf("%s %s: %s", host, kind, why))
	}})
	go func() { _ = g.Run(r.t.Context()) }()
	<-g.Ready()
	return g
}

// process is one process of a worker, which calls a gate.
type process struct {
	*gate.Client
	gate *gate.Gate
}

// process starts a process of a worker of a host.
func (r *rig) process(g *gate.Gate, host string) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &process{gate: g}
	p.Client = gate.NewClient(gate.ClientOptions{Host: host, Incarnation: fmt.Sprint("process-", len(r.clients)+1)}, p)
	r.clients = append(r.clients, p.Client)
	return p
}

// Call implements gate.Conn.
func (p *process) Call(ctx context.Context, q gate.Request) ([]byte, error) {
	return p.gate.Answer(ctx, p.Host, q).Encode(), nil
}

// Send implements gate.Conn.
func (p *process) Send(kind gate.Telemetry, incarnation string, body []byte) error {
	if a, err := message.DecodeAlive(body); kind == gate.AliveTelemetry && err == nil {
		p.gate.Heard(p.Host, a.Worker, incarnation)
	}
	return nil
}

// Connected implements gate.Conn.
func (p *process) Connected() bool { return true }

// acquire has a process get the lease.
func (r *rig) acquire(p *process, worker string) (epoch uint64) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	epoch, err := p.Lease(ctx, worker)
	if err != nil {
		r.t.Fatalf("worker %s, %s, asks for the lease and gets %v", worker, p.Incarnation, err)
	}
	return epoch
}

// taken checks that a process does not get the lease.
func (r *rig) taken(p *process, worker string) {
	r.t.Helper()
	if _, err := p.Lease(r.t.Context(), worker); !errors.Is(err, log.ErrTaken) {
		r.t.Errorf("worker %s, %s, asks for the lease and gets %v", worker, p.Incarnation, err)
	}
}

// kept is the lease of h01 as the store has it.
func (r *rig) kept() (l gate.Lease) {
	r.t.Helper()
	body, _, err := r.keeper.Lease(r.t.Context(), "acme", "h01")
	if err == nil {
		err = format.Lease.Decode(body, &l)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

// add appends a record.
func (r *rig) add(record message.Record) uint64 {
	r.t.Helper()
	seq, err := r.log.Add(record)
	if err != nil {
		r.t.Fatal(err)
	}
	return seq
}

func prepare(hosts ...string) message.Record {
	return message.Record{Kind: message.CommandAll, Body: message.Command{
		Action: message.Prepare, Hosts: hosts, NotAfter: time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC),
	}.Encode()}
}
