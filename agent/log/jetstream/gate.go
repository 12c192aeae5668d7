package jetstream

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Bounds of the calls of hosts.
const (
	// gateWorkers is how many calls that write to disk are answered at once, over
	// all hosts; quickWorkers is how many of the others.
	gateWorkers, quickWorkers = 32, 2
	// callsPerHost is how many calls of one host may be open: those of its process, and
	// as many that it has given up or that are of the process before it. maxCalls is how
	// many of all hosts may wait, and maxWaiting how many bytes they may have. A call
	// beyond that is dropped, and an honest host calls again. After a hint 10,000 hosts
	// call at once.
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
	calls, quick lane
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
	}
	g.calls, g.quick = lane{gate: g, most: gateWorkers}, lane{gate: g, most: quickWorkers}
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
	if r.Outcome != "" {
		msg.Header.Set(headerOutcome, string(r.Outcome))
	}
	if r.Class != "" {
		msg.Header.Set(headerClass, string(r.Class))
	}
	if r.UpToDate {
		msg.Header.Set(headerUpToDate, "1")
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

// OldestPrepare implements gate.Log.
func (l gateLog) OldestPrepare(ctx context.Context) (uint64, error) {
	oldest, err := l.newest(ctx, l.subjects.Prepare(""))
	if err != nil {
		return 0, err
	}
	named := l.subjects.PrepareNamed() + "*"
	if some, err := l.newest(ctx, named); err != nil || some == 0 {
		return oldest, err
	}
	info, err := l.stream.Info(ctx, jetstream.WithSubjectFilter(named))
	if err != nil {
		return 0, err
	}
	for subject := range info.State.Subjects {
		seq, err := l.newest(ctx, subject)
		if err != nil {
			return 0, err
		}
		if seq != 0 && (oldest == 0 || seq < oldest) {
			oldest = seq
		}
	}
	return oldest, nil
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
	sub, err := g.log.nats.QueueSubscribe(g.log.subjects.Call("*", ">"), "gate", func(msg *nats.Msg) { g.admit(ctx, msg) })
	if err != nil {
		return fmt.Errorf("cannot let hosts in: %w", err)
	}
	// Hosts that are connected already may have missed earlier pushes.
	g.Reconnected()
	g.log.whenBack(ctx, g.Reconnected)
	<-ctx.Done()
	_ = sub.Unsubscribe()
	g.calls.close()
	g.quick.close()
	return ctx.Err()
}

// call is a call of a host.
type call struct {
	host    string
	request gate.Request
	// inbox is the subject on which the host waits for the response.
	inbox string
	// at is when the call came, size the size of its message in bytes.
	at   time.Time
	size int
}

// read returns the call in a message; false when its response would not go to its host.
func (g *Gate) read(msg *nats.Msg) (*call, bool) {
	parts := strings.Split(msg.Subject, ".")
	host, ok := log.Host(parts[2])
	q := gate.Request{Verb: parts[4:], Worker: msg.Header.Get(headerWorker), Incarnation: msg.Header.Get(headerIncarnation), Log: msg.Header.Get(headerLog), Body: msg.Data}
	q.Reads = msg.Header.Get(headerReads)
	q.Outcome = message.OutcomeBeside(msg.Header.Get(headerOutcome))
	q.Class, _ = message.ParseClass(msg.Header.Get(headerClass)) // None when there is none, or one of a newer worker.
	q.UpToDate = msg.Header.Get(headerUpToDate) != ""
	q.Protocol, _ = strconv.Atoi(msg.Header.Get(headerProtocol)) // 0 when there is none.
	return &call{host: host, request: q, inbox: msg.Reply, at: time.Now(), size: msg.Size()}, ok && strings.HasPrefix(msg.Reply, g.log.subjects.Inbox(host)+".")
}

// admit queues a call unless its host has too many open calls. It never waits:
// otherwise calls would pile up in the subscription, uncounted.
func (g *Gate) admit(ctx context.Context, msg *nats.Msg) {
	if msg.Size() > maxCall {
		return
	}
	c, ok := g.read(msg)
	if !ok || !g.begin(c) {
		return
	}
	calls := &g.calls
	if c.request.Quick() {
		calls = &g.quick
	}
	if !calls.put(ctx, c) {
		g.end(c)
	}
}

func (g *Gate) begin(c *call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[c.host] >= callsPerHost || g.waiting+c.size > maxWaiting {
		return false
	}
	g.open[c.host]++
	g.waiting += c.size
	return true
}

func (g *Gate) end(c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting -= c.size
	if g.open[c.host]--; g.open[c.host] == 0 {
		delete(g.open, c.host)
	}
}

// lane are calls that are answered in the order in which they came, most of them at once.
// An idle lane has no goroutine and takes no memory: a site may have 1,000 tenants.
type lane struct {
	gate *Gate
	most int
	mu   sync.Mutex
	// waiting are the calls that nobody answers yet, workers is how many are being answered.
	waiting []*call
	workers int
	closed  bool
	running sync.WaitGroup
}

// put takes a call; false when too many wait or the lane is closed.
func (l *lane) put(ctx context.Context, c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed || len(l.waiting) >= maxCalls:
		return false
	case l.workers >= l.most:
		l.waiting = append(l.waiting, c)
	default:
		l.workers++
		l.running.Go(func() { l.work(ctx, c) })
	}
	return true
}

// work answers a call, and then those that wait, until ctx ends.
func (l *lane) work(ctx context.Context, c *call) {
	for c != nil && ctx.Err() == nil {
		l.gate.answer(ctx, c)
		l.gate.end(c)
		c = l.next()
	}
}

// next returns the call that has waited for the longest; nil ends the worker.
func (l *lane) next() *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.workers, l.waiting = l.workers-1, nil
		return nil
	}
	c := l.waiting[0]
	l.waiting[0], l.waiting = nil, l.waiting[1:]
	return c
}

// close returns once no call is being answered any more. The context of the calls has ended.
func (l *lane) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.running.Wait()
}

// answer answers a call, unless it has waited for so long that its host has given it up
// and calls again: a gate that has too much to do would do everything twice.
func (g *Gate) answer(ctx context.Context, c *call) {
	if time.Since(c.at) > 2*gate.CallTimeout {
		return
	}
	limited, cancel := context.WithTimeout(ctx, gate.CallTimeout)
	defer cancel()
	// A host that missed the response calls again.
	_ = g.log.nats.Publish(c.inbox, g.Answer(limited, c.host, c.request).Encode())
}
