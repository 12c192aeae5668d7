package jetstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
)

// Station is the log for one host, under that host's own credentials.
type Station struct {
	subjects topic.Subjects
	host     string
	nats     *nats.Conn
	js       jetstream.JetStream
	// gap is told when pushed commands may have been missed.
	gap chan struct{}
}

var _ topic.Station = (*Station)(nil)

// Dial opens the connection of a host; its options name the server and the
// credentials.
func Dial(tenant, host string, connect func(...nats.Option) (*nats.Conn, error)) (*Station, error) {
	s := &Station{subjects: topic.Subjects{Tenant: tenant}, host: host, gap: make(chan struct{}, 1)}
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
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	s.nats, s.js = nc, js
	return s, nil
}

// Close ends the connection.
func (s *Station) Close() { s.nats.Close() }

// Commands implements topic.Station: it subscribes first and catches up
// second, so that nothing falls between.
func (s *Station) Commands(ctx context.Context, deliver func(message.Record)) error {
	pushed := make(chan *nats.Msg, 64)
	for _, subject := range s.commandSubjects() {
		sub, err := s.nats.ChanSubscribe(s.subjects.Pushed(subject), pushed)
		if err != nil {
			return fmt.Errorf("cannot subscribe to commands: %w", err)
		}
		defer func() { _ = sub.Unsubscribe() }()
	}
	for {
		if err := s.catchUp(ctx, deliver); err != nil {
			return err
		}
		if err := s.push(ctx, pushed, deliver); err != nil {
			return err
		}
	}
}

func (s *Station) commandSubjects() []string {
	return []string{s.subjects.CommandAll(), s.subjects.CommandHost(s.host)}
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
			if r, err := s.stored(msg); err == nil {
				deliver(r)
			}
		}
	}
}

// catchUp delivers the newest command of each subject. Older ones are of no
// use: a controller sends the next command only after the answer to the last.
func (s *Station) catchUp(ctx context.Context, deliver func(message.Record)) error {
	var newest []message.Record
	for _, subject := range s.commandSubjects() {
		var found *message.Record
		err := retry(ctx, func(ctx context.Context) (err error) {
			found, err = s.last(ctx, subject)
			return err
		})
		if err != nil {
			return err
		}
		if found != nil {
			newest = append(newest, *found)
		}
	}
	if len(newest) == 2 && newest[0].Seq > newest[1].Seq {
		newest[0], newest[1] = newest[1], newest[0]
	}
	for _, r := range newest {
		deliver(r)
	}
	return nil
}

// last gets the newest record of a subject; nil when there is none.
func (s *Station) last(ctx context.Context, subject string) (*message.Record, error) {
	msg, err := s.nats.RequestWithContext(ctx, s.subjects.DirectGet(subject), nil)
	if err != nil {
		return nil, fmt.Errorf("cannot get the last record of %s: %w", subject, err)
	}
	switch status := msg.Header.Get("Status"); status {
	case "":
	case "404":
		return nil, nil
	default:
		return nil, fmt.Errorf("cannot get the last record of %s: %s %s", subject, status, msg.Header.Get("Description"))
	}
	r, err := s.stored(msg)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// stored reads a record that the server took from the stream: pushed or got.
func (s *Station) stored(msg *nats.Msg) (message.Record, error) {
	subject := msg.Header.Get(jetstream.SubjectHeader)
	r, err := s.subjects.Parse(subject)
	if err != nil {
		return message.Record{}, err
	}
	if r.Seq, err = strconv.ParseUint(msg.Header.Get(jetstream.SequenceHeader), 10, 64); err != nil {
		return message.Record{}, fmt.Errorf("record of %s has no sequence", subject)
	}
	if at, err := time.Parse(time.RFC3339Nano, msg.Header.Get(jetstream.TimeStampHeaer)); err == nil {
		r.Time = at
	}
	r.Body = msg.Data
	return withRun(r, msg.Header), nil
}

// Reply implements topic.Station. A reply whose acknowledgement is lost is
// sent again; the expected last sequence 0 keeps it from counting twice.
func (s *Station) Reply(ctx context.Context, run uint64, reply message.Reply) error {
	subject := s.subjects.Reply(run, reply.Action, s.host)
	return retry(ctx, func(ctx context.Context) error {
		_, err := s.js.Publish(ctx, subject, reply.Encode(), jetstream.WithExpectLastSequencePerSubject(0))
		if rejected(err) {
			return topic.ErrAnswered
		}
		return err
	})
}

// Versions implements topic.Station.
func (s *Station) Versions(ctx context.Context, body []byte) error {
	return retry(ctx, func(ctx context.Context) error {
		_, err := s.js.Publish(ctx, s.subjects.Versions(s.host), body)
		return err
	})
}

// LastVersions implements topic.Station.
func (s *Station) LastVersions(ctx context.Context) (body []byte, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		r, err := s.last(ctx, s.subjects.Versions(s.host))
		if err == nil && r != nil {
			body = r.Body
		}
		return err
	})
	return body, err
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

// retry tries until try succeeds, answers ErrAnswered, or ctx ends.
func retry(ctx context.Context, try func(context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		once, cancel := context.WithTimeout(ctx, appendTimeout)
		err := try(once)
		cancel()
		if err == nil || errors.Is(err, topic.ErrAnswered) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}
