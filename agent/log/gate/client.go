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

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

const (
	firstPause = 50 * time.Millisecond
	longPause  = 5 * time.Second
	// maxPushed is how many pushes may wait for the worker. When there are more, the
	// host asks for the newest commands.
	maxPushed = 64
	// maxWithin bounds how long a host puts off a report that it is asked for.
	maxWithin = time.Hour
)

// Telemetry is a message that a host sends beside the log. It may be lost.
type Telemetry int

// The kinds of telemetry.
const (
	AliveTelemetry Telemetry = iota
	ProgressTelemetry
	OutcomeTelemetry
)

// Conn is a host's connection to the gates. It calls Pushed, Pinged and Tasked of the
// Client for messages that arrive unasked, and Missed when some may be lost.
type Conn interface {
	// Call sends a request once and returns the response. log.ErrRefused means that
	// this request can never be sent.
	Call(ctx context.Context, q Request) ([]byte, error)
	// Send sends telemetry of this process.
	Send(kind Telemetry, incarnation string, body []byte) error
	// Connected reports whether there is a connection now.
	Connected() bool
}

// ClientOptions name the host, worker and process for which a Client calls.
type ClientOptions struct {
	Host string
	// Incarnation identifies this process among all processes of its worker.
	Incarnation string
	// Jitter returns a random duration below a limit; nil means rand.N.
	Jitter func(limit time.Duration) time.Duration
}

// Client is the log for one host, under that host's own credentials.
type Client struct {
	ClientOptions
	conn Conn
	// stale is signalled when pushes may have been lost, vacated when another worker
	// has given the lease back.
	stale, vacated wait.Signal
	pushed         chan Push
	// open has an element for each call under way.
	open chan struct{}
	mu   sync.Mutex
	// log is the identity of the log in the latest response.
	log string
	// lease is the lease that was granted; nil before. other is the lease that has
	// displaced it; nil while none has.
	lease, other *Lease
	// task, ping and asked receive the tasks, pings and asks; nil while no call of Tasks,
	// Pings or Asked is under way.
	task  func(message.Task)
	ping  func()
	asked func(log.Ask)
}

var _ log.HostLog = (*Client)(nil)

// NewClient makes the client of a connection.
func NewClient(o ClientOptions, conn Conn) *Client {
	if o.Jitter == nil {
		o.Jitter = func(limit time.Duration) time.Duration { return rand.N(limit) }
	}
	return &Client{
		ClientOptions: o, conn: conn,
		stale: wait.NewSignal(), vacated: wait.NewSignal(), pushed: make(chan Push, maxPushed), open: make(chan struct{}, OpenCalls),
	}
}

// Missed is called when pushes or pings may have been lost.
func (c *Client) Missed() { c.stale.Set() }

// Pushed takes a push. The Conn calls it in the order in which a gate has sent the
// pushes. A lease counts at once, so that a worker that has lost its lease knows this
// before it sees a command to the next holder.
func (c *Client) Pushed(body []byte) {
	var p Push
	if json.Unmarshal(body, &p) != nil {
		return
	}
	if p.Lease != nil {
		c.displaced(*p.Lease)
	}
	switch {
	case p.Ask != nil:
		c.takeAsk(log.Ask{Kind: report.Named(p.Ask.Kind)}, p.Ask.WithinSeconds)
		return
	case p.Offer != nil:
		c.takeAsk(log.Ask{Kind: report.Offer, ByRelease: true, Release: p.Offer.Release}, p.Offer.WithinSeconds)
		return
	}
	select {
	case c.pushed <- p:
	default:
		c.Missed()
	}
}

// takeAsk takes the request for a report.
func (c *Client) takeAsk(a log.Ask, withinSeconds int) {
	c.mu.Lock()
	asked := c.asked
	c.mu.Unlock()
	if a.Kind != nil && asked != nil && c.taken() == nil {
		a.Within = min(time.Duration(max(withinSeconds, 0))*time.Second, maxWithin)
		asked(a)
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

// Tasked takes a task of a controller. A task that cannot be read is dropped; the
// controller times it out. So is a task for another process of a worker; the controller
// sends it again, to the process that holds the lease.
func (c *Client) Tasked(body []byte) {
	t, err := message.DecodeTask(body)
	c.mu.Lock()
	task := c.task
	c.mu.Unlock()
	mine := t.Incarnation == "" || t.Incarnation == c.Incarnation
	if err == nil && t.Host == c.Host && mine && task != nil && c.taken() == nil {
		task(t)
	}
}

// displaced notes a lease that was pushed: it may be vacant now, or end the lease of
// this process.
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

// granted notes the lease that this process was granted, unless a later lease was
// pushed meanwhile.
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

// taken returns the error for a worker that has lost its lease; nil while it holds
// the lease.
func (c *Client) taken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.other == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", log.ErrTaken, c.other.refusal(c.lease.Worker))
}

// ask calls the gate, unless this process has lost the lease.
func (c *Client) ask(ctx context.Context, body []byte, verb ...string) (Response, error) {
	return c.request(ctx, Request{Verb: verb, Body: body})
}

// request is ask for any request.
func (c *Client) request(ctx context.Context, q Request) (Response, error) {
	if err := c.taken(); err != nil {
		return Response{}, fmt.Errorf("%s: %w", q.Verb[0], err)
	}
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
	// The site drops a much larger message unread.
	if len(q.Body) > message.MaxVersionsBody {
		return Response{}, fmt.Errorf("%s: %w: %d bytes; at most %d", verb, log.ErrRefused, len(q.Body), message.MaxVersionsBody)
	}
	select {
	case c.open <- struct{}{}:
		defer func() { <-c.open }()
	case <-ctx.Done():
		return Response{}, fmt.Errorf("cannot call %s: %w", verb, ctx.Err())
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

// Newest implements log.HostLog. Older commands need no reply: a controller sends the
// next command only after the reply to the last one.
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

// record converts a command from the gate to a record.
func (c *Client) record(in Command) message.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := message.Record{Log: c.log, Seq: in.Seq, Time: in.Time, Kind: in.Kind, Run: in.Run, Epoch: in.Epoch, Checks: in.Checks, Release: in.Release, Rollback: in.Rollback, Outputs: in.Outputs, Body: in.Body}
	if r.Kind == message.CommandHost {
		r.Host = c.Host
	}
	return r
}

// Commands implements log.HostLog.
func (c *Client) Commands(ctx context.Context, deliver func(message.Record)) error {
	// A command that was pushed while this worker did not hold the lease was for
	// another worker. The gate that answers pushes each later command.
	for len(c.pushed) > 0 {
		<-c.pushed
	}
	for {
		// The gate pushes later what it has not read yet.
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

// listen delivers the pushed commands until a hint arrives or pushes may be lost.
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

// Report implements log.HostLog.
func (c *Client) Report(ctx context.Context, r report.Report) error {
	_, err := c.ask(ctx, r.Body, append([]string{verbReport}, r.Words()...)...)
	return err
}

// LastReport implements log.HostLog.
func (c *Client) LastReport(ctx context.Context, kind *report.Kind) (told report.Told, err error) {
	r, err := c.ask(ctx, nil, verbLastReport, kind.Name)
	if err != nil {
		return told, err
	}
	if err := json.Unmarshal(r.Body, &told); err != nil {
		return told, fmt.Errorf("cannot read which %s the site has: %w", kind.Name, err)
	}
	return told, nil
}

// Release implements log.HostLog.
func (c *Client) Release(ctx context.Context, run uint64) ([]byte, error) {
	r, err := c.ask(ctx, nil, verbRelease, strconv.FormatUint(run, 10))
	return r.Body, err
}

// Reply implements log.HostLog. When the acknowledgement is lost the reply is sent
// again; the log accepts only one.
func (c *Client) Reply(ctx context.Context, run uint64, reply message.Reply) error {
	result := reply.Result
	return c.reply(ctx, Request{
		Verb: replyVerb(run, reply.Action), Body: reply.Encode(), Log: reply.Log, Outcome: result.Outcome.Beside(), Class: result.Class, UpToDate: result.UpToDate,
	})
}

// ReplyRaw is Reply with any body, as a byzantine host may send it.
func (c *Client) ReplyRaw(ctx context.Context, run uint64, action message.Action, body []byte) error {
	return c.reply(ctx, Request{Verb: replyVerb(run, action), Body: body})
}

func replyVerb(run uint64, action message.Action) []string {
	return []string{verbReply, strconv.FormatUint(run, 10), string(action)}
}

func (c *Client) reply(ctx context.Context, q Request) error {
	r, err := c.request(ctx, q)
	if err == nil && r.Answered {
		return log.ErrAnswered
	}
	return err
}

// Alive implements log.HostLog. A worker that has lost the lease sends heartbeats as
// well: the gate then pushes the lease to it.
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
	// A ping from before this subscription was missed. The controller may also have
	// missed earlier heartbeats: it listens before it pings. So one ping is delivered
	// now.
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

// Asked implements log.HostLog.
func (c *Client) Asked(ctx context.Context, deliver func(log.Ask)) error {
	c.mu.Lock()
	c.asked = deliver
	c.mu.Unlock()
	<-ctx.Done()
	c.mu.Lock()
	c.asked = nil
	c.mu.Unlock()
	return ctx.Err()
}
