package jetstream

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// Bounds of the gate.
const (
	// gateWorkers is how many calls of all hosts are answered at once that wait
	// for the disk, and quickWorkers how many of the others.
	gateWorkers, quickWorkers = 32, 2
	// callsPerHost is how many calls of one host may be open, maxCalls how many
	// of all hosts may wait, maxWaiting how many bytes they may have. What comes
	// beyond that is dropped, and an honest host asks again. 10,000 hosts ask at
	// once when there is news.
	callsPerHost, maxCalls, maxWaiting = 4, 1 << 16, 128 << 20
	// maxCall bounds one call with its headers, in bytes. What is larger than
	// what it may be, but not by much, is refused in words.
	maxCall = 2 * message.MaxVersionsBody
)

// Keeper keeps what a host has one entry of, so that it cannot fill the log:
// the versions that it reports, and the worker that has its seat. The key is a
// host's name as one subject token.
type Keeper interface {
	PutVersions(ctx context.Context, tenant, key string, body []byte) error
	Versions(ctx context.Context, tenant, key string) ([]byte, error)
	// PutSeat writes an entry if the one there still has the number base, 0 when
	// there never was one, and returns its own number.
	PutSeat(ctx context.Context, tenant, key string, body []byte, base uint64) (uint64, error)
	// WatchSeats calls see with each entry, now and after each change; with an
	// empty key at the end of what was there, with no body when it is gone. It
	// returns when ctx ends or the store is gone.
	WatchSeats(ctx context.Context, tenant string, see func(key string, body []byte, number uint64)) error
}

// Gate is where hosts are let in: it takes each host's calls on that host's
// own subject, does what is allowed in the host's name, and answers to that
// host's own inbox, whatever else the call says.
type Gate struct {
	log    *Log
	keeper Keeper
	board  board
	seats  seats
	// quick are the calls that are answered from memory: nobody is to wait with
	// them behind those that are written to disk.
	calls, quick chan *nats.Msg
	mu           sync.Mutex
	// open counts the calls of each host that wait or are being answered,
	// waiting the bytes of all of them.
	open    map[string]int
	waiting int
}

// NewGate makes the gate of a log. From then on the log delivers no heartbeat
// of a worker that does not have its host's seat.
func NewGate(log *Log, keeper Keeper) *Gate {
	g := &Gate{
		log: log, keeper: keeper, board: board{log: log}, open: map[string]int{},
		calls: make(chan *nats.Msg, maxCalls), quick: make(chan *nats.Msg, maxCalls),
		seats: seats{log: log, keeper: keeper, byHost: map[string]*seat{}, begun: time.Now()},
	}
	log.gate.Store(g)
	return g
}

// heard notes a heartbeat and reports whether it counts. A worker that has
// lost the seat is told so.
func (g *Gate) heard(host, worker, session string) bool {
	h, has := g.seats.heard(host, worker, session)
	if !has {
		g.seats.tell(host, h)
	}
	return has
}

// Serve answers calls until ctx ends. Several gates share the work.
func (g *Gate) Serve(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	seats, board := make(chan struct{}), make(chan struct{})
	var parts sync.WaitGroup
	for _, part := range []func() error{
		func() error { return g.seats.serve(ctx, sync.OnceFunc(func() { close(seats) })) },
		func() error { return g.board.serve(ctx, sync.OnceFunc(func() { close(board) })) },
		func() error { return g.letIn(ctx, seats, board) },
	} {
		parts.Go(func() { stop(part()) })
	}
	parts.Wait()
	return context.Cause(ctx)
}

// letIn takes calls once the gate knows what was there before it.
func (g *Gate) letIn(ctx context.Context, known ...<-chan struct{}) error {
	for _, loaded := range known {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-loaded:
		}
	}
	sub, err := g.log.nats.QueueSubscribe(g.log.subjects.Call("*", ">"), "gate", g.admit)
	if err != nil {
		return fmt.Errorf("cannot let hosts in: %w", err)
	}
	// Hosts that are connected already may have missed what came before.
	g.board.tellAll()
	var workers sync.WaitGroup
	for range gateWorkers {
		workers.Go(func() { g.work(ctx, g.calls) })
	}
	for range quickWorkers {
		workers.Go(func() { g.work(ctx, g.quick) })
	}
	<-ctx.Done()
	_ = sub.Unsubscribe()
	workers.Wait()
	return ctx.Err()
}

// caller returns the host of a call and its verb, and whether its answer goes
// to that host.
func (g *Gate) caller(msg *nats.Msg) (host string, verb []string, ok bool) {
	parts := strings.Split(msg.Subject, ".")
	host, ok = log.Host(parts[2])
	return host, parts[4:], ok && strings.HasPrefix(msg.Reply, g.log.subjects.Inbox(host)+".")
}

// admit takes a call unless its host has too many open already. It never
// waits, so that calls do not pile up where nobody counts them.
func (g *Gate) admit(msg *nats.Msg) {
	host, verb, ok := g.caller(msg)
	if !ok || msg.Size() > maxCall || !g.begin(host, msg.Size()) {
		return
	}
	calls := g.calls
	if verb[0] == verbNewest {
		calls = g.quick
	}
	select {
	case calls <- msg:
	default:
		g.end(host, msg.Size())
	}
}

func (g *Gate) begin(host string, size int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[host] >= callsPerHost || g.waiting+size > maxWaiting {
		return false
	}
	g.open[host]++
	g.waiting += size
	return true
}

func (g *Gate) end(host string, size int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting -= size
	if g.open[host]--; g.open[host] == 0 {
		delete(g.open, host)
	}
}

func (g *Gate) work(ctx context.Context, calls <-chan *nats.Msg) {
	for {
		select {
		case <-ctx.Done():
			return
		case msg := <-calls:
			host, verb, _ := g.caller(msg)
			limited, cancel := context.WithTimeout(ctx, appendTimeout)
			answer := g.answer(limited, host, verb, msg)
			cancel()
			// Who asked and is gone asks again.
			_ = g.log.nats.Publish(msg.Reply, answer.encode())
			g.end(host, msg.Size())
		}
	}
}
