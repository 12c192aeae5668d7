package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
)

// Station is the log for one host, under that host's own credentials: it calls
// the gate, and listens to what the stream republishes.
type Station struct {
	subjects topic.Subjects
	host     string
	nats     *nats.Conn
	// gap is told when pushed commands may have been missed.
	gap chan struct{}
	// log identifies the log that was reached last.
	log atomic.Pointer[string]
}

var _ topic.Station = (*Station)(nil)

// Dial opens the connection of a host; its options name the server and the
// credentials.
func Dial(tenant, host string, connect func(...nats.Option) (*nats.Conn, error)) (*Station, error) {
	s := &Station{subjects: topic.Subjects{Tenant: tenant}, host: host, gap: make(chan struct{}, 1)}
	s.log.Store(new(string))
	// After a lost connection or a full buffer a pushed command may be gone.
	missed := func() {
		select {
		case s.gap <- struct{}{}:
		default:
		}
	}
	nc, err := connect(
		nats.CustomInboxPrefix(s.subjects.Inbox(host)),
		nats.ReconnectHandler(func(*nats.Conn) { missed() }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { missed() }),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot connect host %s to the log: %w", host, err)
	}
	s.nats = nc
	return s, nil
}

// Close ends the connection.
func (s *Station) Close() { s.nats.Close() }

// Commands implements topic.Station: it subscribes first and catches up
// second, so that nothing falls between.
func (s *Station) Commands(ctx context.Context, deliver func(message.Record)) error {
	pushed := make(chan *nats.Msg, 64)
	for _, subject := range []string{s.subjects.CommandAll(), s.subjects.CommandHost(s.host)} {
		sub, err := s.nats.ChanSubscribe(s.subjects.Pushed(subject), pushed)
		if err != nil {
			return fmt.Errorf("cannot subscribe to commands: %w", err)
		}
		defer func() { _ = sub.Unsubscribe() }()
	}
	for {
		newest, err := s.Newest(ctx)
		if err != nil {
			return err
		}
		for _, r := range newest {
			deliver(r)
		}
		if err := s.push(ctx, pushed, deliver); err != nil {
			return err
		}
	}
}

// push delivers what the stream republishes until something may be missing.
func (s *Station) push(ctx context.Context, pushed <-chan *nats.Msg, deliver func(message.Record)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.gap:
			return nil
		case msg := <-pushed:
			if r, err := s.pushed(msg); err == nil {
				deliver(r)
			}
		}
	}
}

// pushed reads a record that the stream republished.
func (s *Station) pushed(msg *nats.Msg) (message.Record, error) {
	seq, err := strconv.ParseUint(msg.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return message.Record{}, fmt.Errorf("a pushed record has no sequence: %w", err)
	}
	at, err := time.Parse(time.RFC3339Nano, msg.Header.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return message.Record{}, fmt.Errorf("pushed record %d has no time: %w", seq, err)
	}
	r, err := s.read(record{Subject: msg.Header.Get(jetstream.SubjectHeader), Seq: seq, Time: at, Body: msg.Data})
	return withRun(r, msg.Header), err
}

// read turns what arrives into a record.
func (s *Station) read(in record) (message.Record, error) {
	r, err := s.subjects.Parse(in.Subject)
	if err != nil {
		return message.Record{}, err
	}
	r.Log, r.Seq, r.Time, r.Run, r.Body = *s.log.Load(), in.Seq, in.Time, in.Run, in.Body
	return r, nil
}

// Newest implements topic.Station. Older commands are of no use: a controller
// sends the next one only after the answer to the last.
func (s *Station) Newest(ctx context.Context) ([]message.Record, error) {
	a, err := s.call(ctx, verbNewest, nil)
	if err != nil {
		return nil, err
	}
	s.log.Store(&a.Log)
	var newest []message.Record
	for _, in := range a.Records {
		r, err := s.read(in)
		if err != nil {
			return nil, err
		}
		newest = append(newest, r)
	}
	if len(newest) == 2 && newest[0].Seq > newest[1].Seq {
		newest[0], newest[1] = newest[1], newest[0]
	}
	return newest, nil
}

// Reply implements topic.Station. A reply whose acknowledgement is lost is
// sent again; the log takes only one.
func (s *Station) Reply(ctx context.Context, run uint64, reply message.Reply) error {
	a, err := s.call(ctx, fmt.Sprintf("%s.%d.%s", verbReply, run, reply.Action), reply.Encode())
	if err == nil && a.Answered {
		return topic.ErrAnswered
	}
	return err
}

// Versions implements topic.Station.
func (s *Station) Versions(ctx context.Context, body []byte) error {
	_, err := s.call(ctx, verbVersions, body)
	return err
}

// LastVersions implements topic.Station.
func (s *Station) LastVersions(ctx context.Context) ([]byte, error) {
	a, err := s.call(ctx, verbLastVersions, nil)
	return a.Body, err
}

// Alive implements topic.Station.
func (s *Station) Alive(a message.Alive) error {
	return s.nats.Publish(s.subjects.Alive(s.host), a.Encode())
}

// Progress implements topic.Station.
func (s *Station) Progress(p message.Progress) error {
	return s.nats.Publish(s.subjects.Progress(s.host), p.Encode())
}

// Asked implements topic.Station.
func (s *Station) Asked(ctx context.Context, deliver func()) error {
	sub, err := s.nats.Subscribe(s.subjects.Ask(), func(*nats.Msg) { deliver() })
	if err != nil {
		return err
	}
	<-ctx.Done()
	_ = sub.Unsubscribe()
	return ctx.Err()
}

const (
	firstPause = 50 * time.Millisecond
	longPause  = 5 * time.Second
)

// call asks the gate until it answers, refuses, or ctx ends.
func (s *Station) call(ctx context.Context, verb string, body []byte) (answer, error) {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		a, err := s.once(ctx, verb, body)
		if err == nil || errors.Is(err, topic.ErrRefused) {
			return a, err
		}
		select {
		case <-ctx.Done():
			return answer{}, errors.Join(ctx.Err(), err)
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}

func (s *Station) once(ctx context.Context, verb string, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*appendTimeout)
	defer cancel()
	msg, err := s.nats.RequestWithContext(ctx, s.subjects.Call(s.host, verb), body)
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return answer{}, fmt.Errorf("%s: %w: %w", verb, topic.ErrRefused, err)
	case err != nil:
		return answer{}, fmt.Errorf("cannot call %s: %w", verb, err)
	}
	var a answer
	if err := json.Unmarshal(msg.Data, &a); err != nil {
		return answer{}, fmt.Errorf("cannot read the answer to %s: %w", verb, err)
	}
	switch {
	case a.Refused:
		return a, fmt.Errorf("%s: %w: %s", verb, topic.ErrRefused, a.Error)
	case a.Error != "":
		return a, fmt.Errorf("%s failed: %s", verb, a.Error)
	}
	return a, nil
}
