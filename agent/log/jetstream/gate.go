package jetstream

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// Bounds of the calls of hosts.
const (
	// gateWorkers is how many calls that write to disk are answered at once, over
	// all hosts; quickWorkers is how many of the others.
	gateWorkers, quickWorkers = 32, 2
	// callsPerHost is how many calls of one host may be open: those of its process, and
	// of the one before it. maxCalls is how many of all hosts may wait, and maxWaiting
	// how many bytes they may have. A call beyond that is dropped, and an honest host
	// calls again. After a hint 10,000 hosts call at once.
	callsPerHost, maxCalls, maxWaiting = 2 * gate.OpenCalls, 1 << 16, 128 << 20
	// maxCall bounds one call with its headers, in bytes. A call that is a little
	// too large for its verb is within this bound, and is refused with an error.
	maxCall = 2 * message.MaxVersionsBody
)

// Gate carries a gate over NATS: it takes each host's calls on that host's own
// subject and answers to that host's own inbox, whatever else the call says.
type Gate struct {
	*gate.Gate
	log *Log
	// quick are the calls that are answered from memory: they need not wait behind
	// calls that write to disk.
	calls, quick chan *nats.Msg
	mu           sync.Mutex
	// open is the number of calls of each host that wait or are being answered;
	// waiting is the bytes of all of them.
	open    map[string]int
	waiting int
}

// NewGate makes the gate of a log. From then on the log delivers no heartbeat
// of a worker that does not hold its host's lease.
func NewGate(log *Log, keeper gate.Keeper) *Gate {
	g := &Gate{
		Gate: gate.New(gate.Options{Tenant: log.subjects.Tenant, Log: gateLog{log}, Keeper: keeper, Push: log.push}),
		log:  log, open: map[string]int{},
		calls: make(chan *nats.Msg, maxCalls), quick: make(chan *nats.Msg, maxCalls),
	}
	log.gate.Store(g)
	return g
}

// push sends a push to the workers of a host, or to all hosts.
func (l *Log) push(host string, body []byte) {
	subject := l.subjects.PushAll()
	if host != "" {
		subject = l.subjects.Push(host)
	}
	_ = l.nats.Publish(subject, body)
}

// gateLog implements gate.Log.
type gateLog struct{ *Log }

var _ gate.Log = gateLog{}

// AppendReply implements gate.Log.
func (l gateLog) AppendReply(ctx context.Context, r message.Record) error {
	msg := nats.NewMsg(l.subjects.Reply(r.Run, r.Action, r.Host))
	msg.Data = r.Body
	msg.Header.Set(format.Header, format.Record.HeaderValue())
	setEpoch(msg.Header, r.Epoch)
	if r.Unknown {
		msg.Header.Set(headerUnknown, "true")
	}
	if r.Class != "" {
		msg.Header.Set(headerClass, string(r.Class))
	}
	_, err := l.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(0))
	if rejected(err) {
		return log.ErrAnswered
	}
	return err
}

// NewestCommand implements gate.Log.
func (l gateLog) NewestCommand(ctx context.Context) (uint64, error) {
	return l.newest(ctx, l.subjects.Commands())
}

// NewestPrepare implements gate.Log.
func (l gateLog) NewestPrepare(ctx context.Context) (uint64, error) {
	return l.newest(ctx, l.subjects.CommandAll())
}

func (l gateLog) newest(ctx context.Context, subject string) (uint64, error) {
	msg, err := l.last(ctx, subject)
	if err != nil || msg == nil {
		return 0, err
	}
	return msg.Sequence, nil
}

// FollowCommands implements gate.Log.
func (l gateLog) FollowCommands(ctx context.Context, from uint64, deliver func(message.Record)) error {
	return l.follow(ctx, from, []string{l.subjects.Commands()}, deliver)
}

// Serve answers calls until ctx ends. Several gates share the work.
func (g *Gate) Serve(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var parts sync.WaitGroup
	for _, part := range []func(context.Context) error{g.Run, g.letIn} {
		parts.Go(func() { stop(part(ctx)) })
	}
	parts.Wait()
	return context.Cause(ctx)
}

// letIn accepts calls once the gate is ready.
func (g *Gate) letIn(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-g.Ready():
	}
	sub, err := g.log.nats.QueueSubscribe(g.log.subjects.Call("*", ">"), "gate", g.admit)
	if err != nil {
		return fmt.Errorf("cannot let hosts in: %w", err)
	}
	// Hosts that are connected already may have missed earlier pushes.
	g.Reconnected()
	var workers sync.WaitGroup
	for range gateWorkers {
		workers.Go(func() { g.work(ctx, g.calls) })
	}
	for range quickWorkers {
		workers.Go(func() { g.work(ctx, g.quick) })
	}
	g.log.whenBack(ctx, g.Reconnected)
	<-ctx.Done()
	_ = sub.Unsubscribe()
	workers.Wait()
	return ctx.Err()
}

// call is one call of a host, and whether its response goes to that host.
func (g *Gate) call(msg *nats.Msg) (host string, q gate.Request, ok bool) {
	parts := strings.Split(msg.Subject, ".")
	host, ok = log.Host(parts[2])
	q = gate.Request{Verb: parts[4:], Worker: msg.Header.Get(headerWorker), Incarnation: msg.Header.Get(headerIncarnation), Log: msg.Header.Get(headerLog), Body: msg.Data}
	q.Class, _ = message.ParseClass(msg.Header.Get(headerClass)) // None when there is none, or one of a newer worker.
	q.Protocol, _ = strconv.Atoi(msg.Header.Get(headerProtocol)) // 0 when there is none.
	return host, q, ok && strings.HasPrefix(msg.Reply, g.log.subjects.Inbox(host)+".")
}

// admit queues a call unless its host has too many open calls. It never waits:
// otherwise calls would pile up in the subscription, uncounted.
func (g *Gate) admit(msg *nats.Msg) {
	host, q, ok := g.call(msg)
	if !ok || msg.Size() > maxCall || !g.begin(host, msg.Size()) {
		return
	}
	calls := g.calls
	if q.Quick() {
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
			host, q, _ := g.call(msg)
			limited, cancel := context.WithTimeout(ctx, gate.CallTimeout)
			response := g.Answer(limited, host, q)
			cancel()
			// A host that missed the response calls again.
			_ = g.log.nats.Publish(msg.Reply, response.Encode())
			g.end(host, msg.Size())
		}
	}
}
