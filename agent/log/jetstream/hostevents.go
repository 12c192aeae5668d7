package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Bounds of the telemetry of hosts.
const (
	// maxAlive is more than the largest heartbeat has, in bytes: 50 labels.
	maxAlive = 16 << 10
	// maxQueued and maxQueuedBytes are how much may wait of each kind: three
	// heartbeats of each of 10,000 hosts.
	maxQueued, maxQueuedBytes = 1 << 15, 16 << 20
)

// telemetry is one kind of telemetry.
type telemetry struct {
	subject string
	// most is the largest size of a message, in bytes. A larger message is dropped
	// unread: decoding 4 MiB takes as long as thousands of honest messages.
	most int
	hear func(host string, msg *nats.Msg) error
}

// Listen implements log.HostEvents. A message that cannot be read is dropped and
// counted: the next heartbeat follows soon, and the controller sends a task again.
func (l *Log) Listen(ctx context.Context, to log.Listener) error {
	for _, kind := range []telemetry{
		{l.subjects.Alive("*"), maxAlive, func(host string, msg *nats.Msg) error { return l.alive(host, msg, to) }},
		{l.subjects.Progress("*"), gate.MaxReply, func(host string, msg *nats.Msg) error { return progress(host, msg.Data, to) }},
		{l.subjects.Outcome("*"), gate.MaxReply, func(host string, msg *nats.Msg) error { return outcome(host, msg.Data, to) }},
	} {
		sub, err := l.listen(kind)
		if err != nil {
			return fmt.Errorf("cannot listen to hosts on %s: %w", kind.subject, err)
		}
		defer func() { _ = sub.Unsubscribe() }()
	}
	if err := l.nats.Publish(l.subjects.Ping(), nil); err != nil {
		return fmt.Errorf("cannot ping the hosts: %w", err)
	}
	// Heartbeats that were sent meanwhile are lost.
	l.whenBack(ctx, func() { _ = l.nats.Publish(l.subjects.Ping(), nil) })
	<-ctx.Done()
	return ctx.Err()
}

func (l *Log) listen(kind telemetry) (*nats.Subscription, error) {
	sub, err := l.nats.Subscribe(kind.subject, func(msg *nats.Msg) {
		host, known := sender(msg.Subject)
		if !known || len(msg.Data) > kind.most || kind.hear(host, msg) != nil {
			l.dropped.Add(1)
		}
	})
	if err != nil {
		return nil, err
	}
	return sub, sub.SetPendingLimits(maxQueued, maxQueuedBytes)
}

// Dropped returns how many messages of telemetry could not be read.
func (l *Log) Dropped() uint64 { return l.dropped.Load() }

// alive delivers a heartbeat of the worker that holds the lease, and no other.
func (l *Log) alive(host string, msg *nats.Msg, to log.Listener) error {
	a, err := message.DecodeAlive(msg.Data)
	if err != nil {
		return err
	}
	g := l.gate.Load()
	if _, err := format.Agree(a.Protocol); err != nil {
		if g != nil {
			g.Incompatible(host, err)
		}
		return err
	}
	if g == nil || g.Heard(host, a.Worker, msg.Header.Get(headerIncarnation)) {
		to.Alive(host, a)
	}
	return nil
}

func progress(host string, body []byte, to log.Listener) error {
	p, err := message.DecodeProgress(body)
	if err == nil {
		to.Progress(host, p)
	}
	return err
}

var errNotItsOwn = errors.New("the outcome is of another host")

func outcome(host string, body []byte, to log.Listener) error {
	o, err := message.DecodeOutcome(body)
	switch {
	case err != nil:
		return err
	case o.Host != host:
		return errNotItsOwn
	}
	to.Outcome(host, o)
	return nil
}

// Addressed implements log.HostEvents. Without a gate there are no leases, and the task is for
// any process.
func (l *Log) Addressed(t message.Task) (message.Task, bool) {
	g := l.gate.Load()
	if g == nil {
		return t, true
	}
	return g.Addressed(t)
}

// Send implements log.HostEvents.
func (l *Log) Send(t message.Task) error {
	if err := l.nats.Publish(l.subjects.Task(t.Host), t.Encode()); err != nil {
		return fmt.Errorf("cannot send host %s a task of kind %s: %w", t.Host, t.Kind, err)
	}
	return nil
}

// Ask implements log.HostEvents.
func (l *Log) Ask(host string, a log.Ask) error {
	if err := l.nats.Publish(l.subjects.Push(host), gate.EncodeAsk(a)); err != nil {
		return fmt.Errorf("cannot ask host %s for its %s: %w", host, a.Kind.Name, err)
	}
	return nil
}

// sender returns the host to which a subject belongs.
func sender(subject string) (string, bool) {
	host, ok := log.Host(strings.Split(subject, ".")[2])
	return host, ok && names.ValidHost(host)
}
