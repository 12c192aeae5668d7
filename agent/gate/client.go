package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

const (
	firstPause = 50 * time.Millisecond
	longPause  = 5 * time.Second
	// maxPushed is how many pushes may wait for their reader. A host with more
	// asks for the newest commands.
	maxPushed = 64
)

// Telemetry is what a host says beside the log; it may be lost.
type Telemetry int

// The kinds of telemetry.
const (
	AliveTelemetry Telemetry = iota
	ProgressTelemetry
	OutcomeTelemetry
)

// Conn is a host's connection to the gates. It hands what comes by itself to
// the Client: Pushed, Pinged, Tasked, and Missed when something may be lost.
type Conn interface {
	// Call sends a request once and returns the response. log.ErrRefused means
	// that it can never be sent.
	Call(ctx context.Context, q Request) ([]byte, error)
	// Send sends telemetry of this process.
	Send(kind Telemetry, incarnation string, body []byte) error
	// Connected reports whether there is a connection now.
	Connected() bool
}

// ClientOptions say for whom a Client calls.
type ClientOptions struct {
	Host string
	// Incarnation tells this process from all others of its worker.
	Incarnation string
	// Jitter returns a random duration below a limit; nil means rand.N.
	Jitter func(limit time.Duration) time.Duration
}

// Client is the log for one host, under that host's own credentials.
type Client struct {
	ClientOptions
	conn Conn
	// stale is told when pushes may have been missed, vacated when another worker
	// has given the lease back.
	stale, vacated wait.Signal
	pushed         chan Push
	mu             sync.Mutex
	// log identifies the log that was reached last.
	log string
	// lease is what was granted; nil before. other is the lease that has taken it
	// away; nil while none has.
	lease, other *Lease
	// task and ping are who wants tasks and pings; nil while nobody does.
	task func(message.Task)
	ping func()
}

var _ log.HostLog = (*Client)(nil)

// NewClient makes the client of a connection.
func NewClient(o ClientOptions, conn Conn) *Client {
	if o.Jitter == nil {
		o.Jitter = func(limit time.Duration) time.Duration { return rand.N(limit) }
	}
	return &Client{
		ClientOptions: o, conn: conn,
		stale: wait.NewSignal(), vacated: wait.NewSignal(), pushed: make(chan Push, maxPushed),
	}
}

// Missed is called when pushes or pings may have been lost.
func (c *Client) Missed() { c.stale.Set() }

// Pushed takes what a gate has pushed, in the order in which it was sent to the
// host. A lease counts at once, so that a worker that has lost it knows before
// any command to the next holder.
func (c *Client) Pushed(body []byte) {
	var p Push
	if json.Unmarshal(body, &p) != nil {
		return
	}
	if p.Lease != nil {
		c.displaced(*p.Lease)
	}
	select {
	case c.pushed <- p:
	default:
		c.Missed()
	}
}

// Pinged takes the request of a controller to say Alive.
func (c *Client) Pinged() {
	c.mu.Lock()
	ping := c.ping
	c.mu.Unlock()
	if ping != nil {
		ping()
	}
}

// Tasked takes a task of a controller. One that cannot be read has no outcome,
// and the site times it out.
func (c *Client) Tasked(body []byte) {
	t, err := message.DecodeTask(body)
	c.mu.Lock()
	task := c.task
	c.mu.Unlock()
	if err == nil && t.Host == c.Host && task != nil && c.taken() == nil {
		task(t)
	}
}

// displaced takes in who holds the lease now.
func (c *Client) displaced(now Lease) {
	if now.Vacant {
		c.vacated.Set()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lease != nil && now.displaces(*c.lease) {
		c.other = &now
	}
}

// Lease implements log.HostLog.
func (c *Client) Lease(ctx context.Context, worker string) (epoch uint64, err error) {
	for base := uint64(0); ; {
		r, err := c.call(ctx, Request{Verb: []string{verbLease, strconv.FormatUint(base, 10)}, Worker: worker})
		if r.Protocol != 0 {
			if _, err := format.Agree(r.Protocol); err != nil {
				return 0, fmt.Errorf("%s: %w: %w", verbLease, log.ErrProtocol, err)
			}
		}
		switch {
		case err != nil:
			return 0, err
		case r.Lease == nil && r.Revision > base:
			base = r.Revision
			continue
		case r.Lease == nil || !r.Lease.holds(worker, c.Incarnation):
			return 0, fmt.Errorf("%s: %w: the response grants no lease", verbLease, log.ErrRefused)
		}
		c.granted(*r.Lease)
		return r.Lease.Epoch, nil
	}
}

// granted takes in that this process holds a lease, unless it has been told
// meanwhile of a later one.
func (c *Client) granted(mine Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lease = &mine
	if c.other != nil && !c.other.displaces(mine) {
		c.other = nil
	}
}

// GiveBack implements log.HostLog.
func (c *Client) GiveBack(ctx context.Context) error {
	c.mu.Lock()
	mine := c.lease
	c.mu.Unlock()
	if mine == nil {
		return nil
	}
	if err := c.taken(); err != nil {
		return err
	}
	if !c.conn.Connected() {
		return errors.New("cannot give the lease back: the site is not connected")
	}
	_, err := c.once(ctx, Request{Verb: []string{verbGiveBack, strconv.FormatUint(mine.Epoch, 10)}, Worker: mine.Worker})
	return err
}

// Vacated implements log.HostLog.
func (c *Client) Vacated() <-chan struct{} { return c.vacated }

// taken is the error of a worker that has lost the lease; nil while it holds it.
func (c *Client) taken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.other == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", log.ErrTaken, c.other.refusal(c.lease.Worker))
}

// ask calls the gate in the name of the worker that holds the lease.
func (c *Client) ask(ctx context.Context, body []byte, verb ...string) (Response, error) {
	if err := c.taken(); err != nil {
		return Response{}, fmt.Errorf("%s: %w", verb[0], err)
	}
	q := Request{Verb: verb, Body: body}
	c.mu.Lock()
	if c.lease != nil {
		q.Worker = c.lease.Worker
	}
	c.mu.Unlock()
	return c.call(ctx, q)
}

// call asks the gate until it answers, refuses, or ctx ends.
func (c *Client) call(ctx context.Context, q Request) (Response, error) {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		r, err := c.once(ctx, q)
		if err == nil || errors.Is(err, log.ErrRefused) || errors.Is(err, log.ErrTaken) {
			return r, err
		}
		if ended := wait.Sleep(ctx, pause/2+c.Jitter(pause/2)); ended != nil {
			return Response{}, errors.Join(ended, err)
		}
	}
}

func (c *Client) once(ctx context.Context, q Request) (Response, error) {
	verb := q.Verb[0]
	// The site does not even look at what is much larger.
	if len(q.Body) > message.MaxVersionsBody {
		return Response{}, fmt.Errorf("%s: %w: %d bytes; at most %d", verb, log.ErrRefused, len(q.Body), message.MaxVersionsBody)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*CallTimeout)
	defer cancel()
	q.Incarnation, q.Protocol = c.Incarnation, format.Protocol
	body, err := c.conn.Call(ctx, q)
	if err != nil {
		return Response{}, fmt.Errorf("cannot call %s: %w", verb, err)
	}
	var r Response
	if err := json.Unmarshal(body, &r); err != nil {
		return Response{}, fmt.Errorf("cannot read the response to %s: %w", verb, err)
	}
	switch {
	case r.Taken:
		return r, fmt.Errorf("%s: %w: %s", verb, log.ErrTaken, r.Error)
	case r.Refused:
		return r, fmt.Errorf("%s: %w: %s", verb, log.ErrRefused, r.Error)
	case r.Error != "":
		return r, fmt.Errorf("%s failed: %s", verb, r.Error)
	}
	return r, nil
}

// Newest implements log.HostLog. Older commands are of no use: a controller
// sends the next one only after the reply to the last.
func (c *Client) Newest(ctx context.Context) ([]message.Record, error) {
	return c.newest(ctx, verbNewest, current)
}

func (c *Client) newest(ctx context.Context, verb ...string) ([]message.Record, error) {
	r, err := c.ask(ctx, nil, verb...)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.log = r.Log
	c.mu.Unlock()
	var newest []message.Record
	for _, command := range r.Commands {
		newest = append(newest, c.record(command))
	}
	return newest, nil
}

// record turns a command that arrives into a record.
func (c *Client) record(in Command) message.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := message.Record{Log: c.log, Seq: in.Seq, Time: in.Time, Kind: in.Kind, Run: in.Run, Epoch: in.Epoch, Body: in.Body}
	if r.Kind == message.CommandHost {
		r.Host = c.Host
	}
	return r
}

// Commands implements log.HostLog.
func (c *Client) Commands(ctx context.Context, deliver func(message.Record)) error {
	// What was pushed while this worker did not hold the lease was for another.
	// Whichever gate answers pushes all that comes after its answer.
	for len(c.pushed) > 0 {
		<-c.pushed
	}
	for {
		// What the gate does not know yet it pushes later.
		newest, err := c.newest(ctx, verbNewest)
		if err != nil {
			return err
		}
		for _, r := range newest {
			deliver(r)
		}
		if err := c.listen(ctx, deliver); err != nil {
			return err
		}
	}
}

// listen delivers the commands that are pushed until there is a hint, or
// something may be missing.
func (c *Client) listen(ctx context.Context, deliver func(message.Record)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.stale:
			return c.taken()
		case p := <-c.pushed:
			if err := c.taken(); err != nil {
				return err
			}
			if p.Hint {
				return nil
			}
			if p.Command != nil {
				deliver(c.record(*p.Command))
			}
		}
	}
}

// Reply implements log.HostLog. A reply whose acknowledgement is lost is sent
// again; the log takes only one.
func (c *Client) Reply(ctx context.Context, run uint64, reply message.Reply) error {
	verb := replyVerb(run, reply.Action)
	if reply.Unknown {
		verb = append(verb, unknown)
	}
	return c.reply(ctx, reply.Encode(), verb)
}

// ReplyRaw is Reply with any body, as a byzantine host may send it.
func (c *Client) ReplyRaw(ctx context.Context, run uint64, action message.Action, body []byte) error {
	return c.reply(ctx, body, replyVerb(run, action))
}

func replyVerb(run uint64, action message.Action) []string {
	return []string{verbReply, strconv.FormatUint(run, 10), string(action)}
}

func (c *Client) reply(ctx context.Context, body []byte, verb []string) error {
	r, err := c.ask(ctx, body, verb...)
	if err == nil && r.Answered {
		return log.ErrAnswered
	}
	return err
}

// Versions implements log.HostLog.
func (c *Client) Versions(ctx context.Context, body []byte) error {
	_, err := c.ask(ctx, body, verbVersions)
	return err
}

// LastVersions implements log.HostLog.
func (c *Client) LastVersions(ctx context.Context) ([]byte, error) {
	r, err := c.ask(ctx, nil, verbLastVersions)
	return r.Body, err
}

// Alive implements log.HostLog. A worker that has lost the lease says it as
// well: the gate then tells it who holds the lease.
func (c *Client) Alive(a message.Alive) error {
	a.Protocol = format.Protocol
	return c.conn.Send(AliveTelemetry, c.Incarnation, a.Encode())
}

// Progress implements log.HostLog.
func (c *Client) Progress(p message.Progress) error { return c.send(ProgressTelemetry, p.Encode()) }

// Outcome implements log.HostLog.
func (c *Client) Outcome(o message.Outcome) error { return c.send(OutcomeTelemetry, o.Encode()) }

func (c *Client) send(kind Telemetry, body []byte) error {
	if err := c.taken(); err != nil {
		return err
	}
	return c.conn.Send(kind, c.Incarnation, body)
}

// Pings implements log.HostLog.
func (c *Client) Pings(ctx context.Context, deliver func()) error {
	c.mu.Lock()
	c.ping = deliver
	c.mu.Unlock()
	// A controller that pinged before this was not heard, nor may it have heard a
	// heartbeat of before: it listens first and pings second, as is done here.
	deliver()
	<-ctx.Done()
	c.mu.Lock()
	c.ping = nil
	c.mu.Unlock()
	return ctx.Err()
}

// Tasks implements log.HostLog.
func (c *Client) Tasks(ctx context.Context, deliver func(message.Task)) error {
	c.mu.Lock()
	c.task = deliver
	c.mu.Unlock()
	<-ctx.Done()
	c.mu.Lock()
	c.task = nil
	c.mu.Unlock()
	return ctx.Err()
}
