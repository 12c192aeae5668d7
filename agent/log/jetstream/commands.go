package jetstream

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// Newest implements log.HostLog. Older commands are of no use: a controller
// sends the next one only after the answer to the last.
func (s *HostLog) Newest(ctx context.Context) ([]message.Record, error) {
	a, err := s.ask(ctx, verbNewest, nil)
	if err != nil {
		return nil, err
	}
	s.log.Store(&a.Log)
	var newest []message.Record
	for _, in := range a.Records {
		newest = append(newest, s.read(in))
	}
	return newest, nil
}

// read turns what arrives into a record.
func (s *HostLog) read(in record) message.Record {
	r := message.Record{Log: *s.log.Load(), Seq: in.Seq, Time: in.Time, Kind: in.Kind, Run: in.Run, Body: in.Body}
	if r.Kind == message.CommandHost {
		r.Host = s.host
	}
	return r
}

// Commands implements log.HostLog: it subscribes first and catches up
// second, so that nothing falls between. All comes by one channel, so that who
// has lost the seat knows it before any command to whoever has it now.
func (s *HostLog) Commands(ctx context.Context, deliver func(message.Record)) error {
	pushed := make(chan *nats.Msg, 64)
	for _, subject := range []string{s.subjects.News(), s.subjects.Push(s.host), s.subjects.SeatNews(s.host)} {
		sub, err := s.nats.ChanSubscribe(subject, pushed)
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

// push delivers what is pushed until there is news or something may be
// missing.
func (s *HostLog) push(ctx context.Context, pushed <-chan *nats.Msg, deliver func(message.Record)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.gap:
			return nil
		case msg := <-pushed:
			switch msg.Subject {
			case s.subjects.News():
				return nil
			case s.subjects.SeatNews(s.host):
				s.displaced(msg)
			}
			if err := s.taken(); err != nil {
				return err
			}
			var in record
			if msg.Subject == s.subjects.Push(s.host) && json.Unmarshal(msg.Data, &in) == nil {
				deliver(s.read(in))
			}
		}
	}
}
