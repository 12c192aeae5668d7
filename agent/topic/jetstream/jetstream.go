// Package jetstream carries the log of design.md 4 over NATS JetStream: one
// stream per tenant, no server-side consumer per host.
//
// It decides how a record becomes a NATS message and back. It never looks into
// a body.
package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
)

// Headers of a record that its JSON body has no place for.
const (
	headerRun      = "Osu-Run"
	headerProducer = "Osu-Producer"
)

const (
	// maxLog bounds the log of one tenant, in bytes. A full log refuses new
	// records; it never drops old ones unseen.
	maxLog = 1 << 30
	// wrongLastSequence is the server's error when the expected last sequence
	// of a subject is not the one on the log.
	wrongLastSequence jetstream.ErrorCode = 10071
	// appendTimeout bounds the wait for one acknowledgement.
	appendTimeout = 5 * time.Second
)

// Log is one tenant's log for its controller.
type Log struct {
	subjects topic.Subjects
	nats     *nats.Conn
	js       jetstream.JetStream
	stream   jetstream.Stream
}

var (
	_ topic.Log = (*Log)(nil)
	_ topic.Ear = (*Log)(nil)
)

// Open makes the tenant's stream when it is missing, or brings its settings up
// to date.
func Open(ctx context.Context, nc *nats.Conn, tenant string) (*Log, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	subjects := topic.Subjects{Tenant: tenant}
	stream, err := js.CreateOrUpdateStream(ctx, streamConfig(subjects))
	if err != nil {
		return nil, fmt.Errorf("cannot open the log of tenant %s: %w", tenant, err)
	}
	return &Log{subjects: subjects, nats: nc, js: js, stream: stream}, nil
}

func streamConfig(s topic.Subjects) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: s.Stream(), Description: "the log of tenant " + s.Tenant, Subjects: s.All(),
		Storage: jetstream.FileStorage, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
		MaxBytes: maxLog, Replicas: 1, DenyDelete: true, DenyPurge: true, AllowDirect: true,
		RePublish: &jetstream.RePublish{Source: s.Commands(), Destination: s.Pushed(s.Commands())},
	}
}

// Append implements topic.Log.
func (l *Log) Append(ctx context.Context, r message.Record, expect uint64) (uint64, error) {
	subject, err := l.subject(r)
	if err != nil {
		return 0, err
	}
	msg := nats.NewMsg(subject)
	msg.Data = r.Body
	msg.Header.Set(headerProducer, message.Producer)
	if r.Run != 0 {
		msg.Header.Set(headerRun, strconv.FormatUint(r.Run, 10))
	}
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	ack, err := l.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequenceForSubject(expect, l.subjects.Commands()),
		jetstream.WithRetryAttempts(0))
	if rejected(err) {
		return 0, topic.ErrBehind
	}
	if err != nil {
		return 0, fmt.Errorf("cannot append to %s: %w", subject, err)
	}
	return ack.Sequence, nil
}

func rejected(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == wrongLastSequence
}

func (l *Log) subject(r message.Record) (string, error) {
	switch r.Kind {
	case message.CommandAll:
		return l.subjects.CommandAll(), nil
	case message.CommandHost:
		return l.subjects.CommandHost(r.Host), nil
	case message.EventRecord:
		return l.subjects.Event(), nil
	default:
		return "", fmt.Errorf("a controller does not write records of kind %d", r.Kind)
	}
}

// Last implements topic.Log.
func (l *Log) Last(ctx context.Context) (uint64, error) {
	info, err := l.stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("cannot ask for the last record: %w", err)
	}
	return info.State.LastSeq, nil
}

// Follow implements topic.Log with an ordered consumer, which lives in memory
// and finds its place again by itself.
func (l *Log) Follow(ctx context.Context, from uint64, deliver func(message.Record)) error {
	consumer, err := l.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(from, 1),
	})
	if err != nil {
		return fmt.Errorf("cannot follow the log: %w", err)
	}
	lost := make(chan error, 1)
	following, err := consumer.Consume(
		func(msg jetstream.Msg) { deliver(l.record(msg)) },
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { l.tellLost(ctx, err, lost) }))
	if err != nil {
		return fmt.Errorf("cannot follow the log: %w", err)
	}
	defer following.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-lost:
		return err
	case <-following.Closed():
		return errors.New("the log cannot be followed any more")
	}
}

// tellLost looks whether the stream is still there after a consumer had
// trouble, from which it otherwise recovers by itself.
func (l *Log) tellLost(ctx context.Context, cause error, lost chan<- error) {
	if _, err := l.stream.Info(ctx); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return
	}
	select {
	case lost <- fmt.Errorf("the log of tenant %s is gone: %w", l.subjects.Tenant, cause):
	default:
	}
}

// Read implements topic.Log without a consumer, of which a server has only so
// many.
func (l *Log) Read(ctx context.Context, from, to uint64, deliver func(message.Record)) error {
	for seq := from; seq <= to; seq++ {
		msg, err := l.stream.GetMsg(ctx, seq)
		if err != nil {
			return fmt.Errorf("cannot read record %d: %w", seq, err)
		}
		deliver(l.stored(msg))
	}
	return nil
}

// record reads a message that a consumer delivers.
func (l *Log) record(msg jetstream.Msg) message.Record {
	raw := &jetstream.RawStreamMsg{Subject: msg.Subject(), Header: msg.Headers(), Data: msg.Data()}
	if meta, err := msg.Metadata(); err == nil {
		raw.Sequence, raw.Time = meta.Sequence.Stream, meta.Timestamp
	}
	return l.stored(raw)
}

// stored reads a message of the stream. One on a subject that no honest writer
// uses becomes a record of no kind, so that its sequence still counts as seen.
func (l *Log) stored(msg *jetstream.RawStreamMsg) message.Record {
	r, err := l.subjects.Parse(msg.Subject)
	if err != nil {
		r = message.Record{}
	}
	r.Seq, r.Time, r.Body = msg.Sequence, msg.Time.UTC(), msg.Data
	return withRun(r, msg.Header)
}

// withRun takes the run of a command from its header; that of a reply stands
// in its subject.
func withRun(r message.Record, header nats.Header) message.Record {
	if r.Kind == message.ReplyRecord {
		return r
	}
	run, err := strconv.ParseUint(header.Get(headerRun), 10, 64)
	if err == nil {
		r.Run = run
	}
	return r
}
