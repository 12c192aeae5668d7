package jetstream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
)

// HostLog is the log for one host, under that host's own credentials: the client
// of the gates over NATS.
type HostLog struct {
	*gate.Client
	conn hostConn
}

var _ log.HostLog = (*HostLog)(nil)

// PingInterval is how often a host checks its connection. Its heartbeats detect a
// lost connection as well, so the interval is long.
const PingInterval = 5 * time.Minute

// Dial opens the connection of a host; its options name the server and the
// credentials.
func Dial(tenant, host string, connect func(...nats.Option) (*nats.Conn, error)) (*HostLog, error) {
	h := &HostLog{conn: hostConn{subjects: log.Subjects{Tenant: tenant}, host: host}}
	h.Client = gate.NewClient(gate.ClientOptions{Host: host, Incarnation: rand.Text()}, &h.conn)
	// After a lost connection or a full buffer a push may be lost.
	nc, err := connect(
		nats.CustomInboxPrefix(h.conn.subjects.Inbox(host)), nats.PingInterval(PingInterval),
		nats.ReconnectHandler(func(*nats.Conn) { h.Missed() }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { h.Missed() }),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot connect host %s to the log: %w", host, err)
	}
	h.conn.nats = nc
	pushed := func(msg *nats.Msg) { h.Pushed(msg.Data) }
	for subject, take := range map[string]nats.MsgHandler{
		h.conn.subjects.PushAll():  pushed,
		h.conn.subjects.Push(host): pushed,
		h.conn.subjects.Ping():     func(*nats.Msg) { h.Pinged() },
		h.conn.subjects.Task(host): func(msg *nats.Msg) { h.Tasked(msg.Data) },
	} {
		if _, err := nc.Subscribe(subject, take); err != nil {
			nc.Close()
			return nil, fmt.Errorf("cannot listen for what is sent to host %s: %w", host, err)
		}
	}
	return h, nil
}

// Close ends the connection.
func (h *HostLog) Close() { h.conn.nats.Close() }

// Pings implements log.HostLog. A ping may be lost with the connection.
func (h *HostLog) Pings(ctx context.Context, deliver func()) error {
	connected := h.conn.nats.StatusChanged(nats.CONNECTED)
	defer h.conn.nats.RemoveStatusListener(connected)
	ended := make(chan error, 1)
	go func() { ended <- h.Client.Pings(ctx, deliver) }()
	for {
		select {
		case err := <-ended:
			return err
		case _, open := <-connected:
			if !open {
				return errors.New("the connection to the log was closed")
			}
			deliver()
		}
	}
}

// errLost says that a call to the site was given up because its answer cannot arrive.
var errLost = errors.New("the connection to the site was lost")

// GiveBack implements log.HostLog. A worker that ends together with its site would wait
// in vain for the answer: it would arrive on the connection that the call left by.
func (h *HostLog) GiveBack(ctx context.Context) error {
	lost := h.conn.nats.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	defer h.conn.nats.RemoveStatusListener(lost)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- h.Client.GiveBack(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-lost:
		return fmt.Errorf("cannot give the lease back: %w", errLost)
	}
}

// hostConn is a host's connection to the gates.
type hostConn struct {
	subjects log.Subjects
	host     string
	nats     *nats.Conn
}

var _ gate.Conn = (*hostConn)(nil)

// Call implements gate.Conn.
func (c *hostConn) Call(ctx context.Context, q gate.Request) ([]byte, error) {
	msg := nats.NewMsg(c.subjects.Call(c.host, strings.Join(q.Verb, ".")))
	msg.Data = q.Body
	msg.Header.Set(headerWorker, q.Worker)
	msg.Header.Set(headerIncarnation, q.Incarnation)
	msg.Header.Set(headerProtocol, strconv.Itoa(q.Protocol))
	if q.Reads != "" {
		msg.Header.Set(headerReads, q.Reads)
	}
	if q.Log != "" {
		msg.Header.Set(headerLog, q.Log)
	}
	if q.Outcome != "" {
		msg.Header.Set(headerOutcome, string(q.Outcome))
	}
	if q.Class != "" {
		msg.Header.Set(headerClass, string(q.Class))
	}
	if q.UpToDate {
		msg.Header.Set(headerUpToDate, "1")
	}
	response, err := c.nats.RequestMsgWithContext(ctx, msg)
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return nil, fmt.Errorf("%w: %w", log.ErrRefused, err)
	case err != nil:
		return nil, err
	}
	return response.Data, nil
}

// Send implements gate.Conn.
func (c *hostConn) Send(kind gate.Telemetry, incarnation string, body []byte) error {
	subject := map[gate.Telemetry]string{
		gate.AliveTelemetry: c.subjects.Alive(c.host), gate.ProgressTelemetry: c.subjects.Progress(c.host), gate.OutcomeTelemetry: c.subjects.Outcome(c.host),
	}[kind]
	msg := nats.NewMsg(subject)
	msg.Data = body
	msg.Header.Set(headerIncarnation, incarnation)
	return c.nats.PublishMsg(msg)
}

// Connected implements gate.Conn.
func (c *hostConn) Connected() bool { return c.nats.IsConnected() }

const (
	// connectTimeout is how long a host waits for its connection. It is longer than
	// the timeout of the site. A host that stopped waiting earlier would make the
	// site repeat an almost finished handshake, and with ten thousand such hosts the
	// site would never finish one.
	connectTimeout = 20 * time.Second
	// reconnectWait is the least time between two attempts to connect, and
	// reconnectJitter is how much longer the first may be, so that not all hosts
	// connect at once when their site is back. The wait doubles with each failed
	// attempt, reconnectDoubled times at most.
	reconnectWait    = time.Second
	reconnectJitter  = 2 * time.Second
	reconnectDoubled = 4
)

// RetryOptions are the options with which a host connects, and retries without end. TCP sends
// no keepalive probes: a host sends its heartbeat each minute, and probes each 15 seconds were
// two thirds of its traffic.
func RetryOptions() []nats.Option {
	return []nats.Option{
		nats.MaxReconnects(-1), nats.Timeout(connectTimeout), nats.CustomReconnectDelay(ReconnectDelay),
		nats.SetCustomDialer(&net.Dialer{Timeout: connectTimeout, KeepAlive: -1}),
	}
}

// ReconnectDelay is how long a host waits before the given attempt to connect,
// the first being 1.
func ReconnectDelay(attempt int) time.Duration {
	return reconnectWait + mathrand.N(reconnectJitter<<min(max(0, attempt-1), reconnectDoubled))
}
