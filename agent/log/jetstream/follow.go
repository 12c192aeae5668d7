package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
)

// Follow implements log.Log.
func (l *Log) Follow(ctx context.Context, from uint64, deliver func(message.Record)) error {
	return l.follow(ctx, from, nil, deliver)
}

// follow delivers the records of some subjects, or of all, with an ordered
// consumer, which lives in memory and finds its place again by itself.
func (l *Log) follow(ctx context.Context, from uint64, subjects []string, deliver func(message.Record)) error {
	consumer, err := l.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(from, 1), FilterSubjects: subjects,
	})
	if err != nil {
		return fmt.Errorf("cannot follow the log: %w", err)
	}
	lost, unreadable := make(chan error, 1), make(chan error, 1)
	ended := false
	following, err := consumer.Consume(
		func(msg jetstream.Msg) {
			if ended {
				return
			}
			r, err := l.record(msg)
			if err != nil {
				ended = true
				unreadable <- err
				return
			}
			deliver(r)
		},
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
	case err := <-unreadable:
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

// Read implements log.Log without a consumer, of which a server has only so
// many.
func (l *Log) Read(ctx context.Context, from, to uint64, deliver func(message.Record)) error {
	for seq := from; seq <= to; seq++ {
		msg, err := l.stream.GetMsg(ctx, seq)
		if err != nil {
			return fmt.Errorf("cannot read record %d: %w", seq, err)
		}
		r, err := l.stored(msg)
		if err != nil {
			return err
		}
		deliver(r)
	}
	return nil
}

// record reads a message that a consumer delivers.
func (l *Log) record(msg jetstream.Msg) (message.Record, error) {
	raw := &jetstream.RawStreamMsg{Subject: msg.Subject(), Header: msg.Headers(), Data: msg.Data()}
	if meta, err := msg.Metadata(); err == nil {
		raw.Sequence, raw.Time = meta.Sequence.Stream, meta.Timestamp
	}
	return l.stored(raw)
}

// stored reads a message of the stream. A message that no honest writer writes
// becomes a record of no kind, so that its sequence still counts as seen. A record
// of a format that this version does not read is an error: who goes on without it
// would decide by half a log.
func (l *Log) stored(msg *jetstream.RawStreamMsg) (message.Record, error) {
	if err := format.Record.CheckHeader(msg.Header.Get(format.Header)); err != nil {
		return message.Record{}, fmt.Errorf("cannot read record %d of the log of tenant %s: %w", msg.Sequence, l.subjects.Tenant, err)
	}
	r, err := l.subjects.Parse(msg.Subject)
	if r.Kind == message.CommandHost {
		r.Host = msg.Header.Get(headerHost)
	}
	if err != nil || r.Kind == message.CommandHost && !names.ValidHost(r.Host) {
		r = message.Record{}
	}
	r.Seq, r.Time, r.Body = msg.Sequence, msg.Time.UTC(), msg.Data
	return withHeaders(r, msg.Header), nil
}

// withHeaders takes the run of a command, and what else is told beside the body,
// from its headers. The run of a reply stands in its subject.
func withHeaders(r message.Record, header nats.Header) message.Record {
	if run, err := strconv.ParseUint(header.Get(headerRun), 10, 64); err == nil && r.Kind != message.ReplyRecord {
		r.Run = run
	}
	if epoch, err := strconv.ParseUint(header.Get(headerEpoch), 10, 64); err == nil {
		r.Epoch = epoch
	}
	r.Unknown = r.Kind == message.ReplyRecord && header.Get(headerUnknown) != ""
	return r
}
