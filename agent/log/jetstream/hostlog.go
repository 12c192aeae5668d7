package jetstream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
)

// HostLog is the log for one host, under that host's own credentials: the client
// of the gates over NATS.
type HostLog struct {
	*gate.Client
	conn hostConn
}

var _ log.HostLog = (*HostLog)(nil)

// PingInterval is how often a host asks whether its connection is still there.
// Its heartbeats find out as well, so it need not ask often.
const PingInterval = 5 * time.Minute

// Dial opens the connection of a host; its options name the server and the
// credentials.
func Dial(tenant, host string, connect func(...nats.Option) (*nats.Conn, error)) (*HostLog, error) {
	h := &HostLog{conn: hostConn{subjects: log.Subjects{Tenant: tenant}, host: host}}
	h.Client = gate.NewClient(gate.ClientOptions{Host: host, Incarnation: rand.Text()}, &h.conn)
	// After a lost connection or a full buffer a push may be gone.
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
