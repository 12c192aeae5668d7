// Package jetstream carries the log of design.md 4 over NATS JetStream: one
// stream per tenant, no server-side consumer per host.
//
// It decides how a record becomes a NATS message and back, and what a host is
// told. Of a body it looks only into that of a prepare, which names all hosts.
package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/durability"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
)

// Headers of a record that its JSON body has no place for.
const (
	headerRun      = "Osu-Run"
	headerHost     = "Osu-Host"
	headerProducer = "Osu-Producer"
	// headerEpoch is the epoch of the lease that a record belongs to.
	headerEpoch = "Osu-Epoch"
	// headerUnknown is there when a reply is message.Reply.Unknown.
	headerUnknown = "Osu-Unknown"
)

// Headers of what a host sends: its worker, the process of it, and the newest
// protocol that this process speaks.
const (
	headerWorker      = "Osu-Worker"
	headerIncarnation = "Osu-Incarnation"
	headerProtocol    = "Osu-Protocol"
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
	subjects log.Subjects
	// nats is where hosts are, js the log. They are connections of their own
	// where hosts are not trusted.
	nats   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	// gate knows who holds each host's lease; nil when there is none here.
	gate atomic.Pointer[Gate]
	// dropped counts the telemetry that could not be read.
	dropped atomic.Uint64
}

var (
	_ log.Log        = (*Log)(nil)
	_ log.HostEvents = (*Log)(nil)
)

// Open is OpenApart with one connection for both.
func Open(ctx context.Context, nc *nats.Conn, tenant string) (*Log, error) {
	return OpenApart(ctx, nc, nc, tenant)
}

// OpenApart makes the tenant's stream when it is missing, or brings its
// settings up to date. What hosts send and are sent goes over a connection of
// its own, so that a flood of theirs leaves the agent's own way to the log, and
// that of other tenants, as it is.
func OpenApart(ctx context.Context, nc, hosts *nats.Conn, tenant string) (*Log, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	subjects := log.Subjects{Tenant: tenant}
	stream, err := js.CreateOrUpdateStream(ctx, streamConfig(subjects))
	if err != nil {
		return nil, fmt.Errorf("cannot open the log of tenant %s: %w", tenant, err)
	}
	return &Log{subjects: subjects, nats: hosts, js: js, stream: stream}, nil
}

func streamConfig(s log.Subjects) jetstream.StreamConfig {
	return durability.Stream(jetstream.StreamConfig{
		Name: s.Stream(), Description: "the log of tenant " + s.Tenant, Subjects: s.All(),
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
		MaxBytes: maxLog, DenyDelete: true, AllowDirect: true,
	})
}

// Append implements log.Log.
func (l *Log) Append(ctx context.Context, r message.Record, expect uint64) (uint64, error) {
	return l.append(ctx, r, expect)
}

// AppendNext implements log.Log.
func (l *Log) AppendNext(ctx context.Context, r message.Record, expect, last uint64) (uint64, error) {
	return l.append(ctx, r, expect, jetstream.WithExpectLastSequence(last))
}

func (l *Log) append(ctx context.Context, r message.Record, expect uint64, more ...jetstream.PublishOpt) (uint64, error) {
	subject, err := l.subject(r)
	if err != nil {
		return 0, err
	}
	msg := nats.NewMsg(subject)
	msg.Data = r.Body
	msg.Header.Set(format.Header, format.Record.HeaderValue())
	msg.Header.Set(headerProducer, message.Producer)
	if r.Run != 0 {
		msg.Header.Set(headerRun, strconv.FormatUint(r.Run, 10))
	}
	if r.Kind == message.CommandHost {
		msg.Header.Set(headerHost, r.Host)
	}
	setEpoch(msg.Header, r.Epoch)
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	ack, err := l.js.PublishMsg(ctx, msg, append(more,
		jetstream.WithExpectLastSequenceForSubject(expect, l.subjects.Commands()), jetstream.WithRetryAttempts(0))...)
	if rejected(err) {
		return 0, log.ErrBehind
	}
	if err != nil {
		return 0, fmt.Errorf("cannot append to %s: %w", subject, err)
	}
	return ack.Sequence, nil
}

func setEpoch(header nats.Header, epoch uint64) {
	if epoch != 0 {
		header.Set(headerEpoch, strconv.FormatUint(epoch, 10))
	}
}

// rejected reports whether the server has refused an append because the log is
// not as expected. With several replicas it may also say that another append is
// under way (10164), which may yet fail: nobody knows then.
func rejected(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == wrongLastSequence
}

func (l *Log) subject(r message.Record) (string, error) {
	switch r.Kind {
	case message.CommandAll:
		return l.subjects.CommandAll(), nil
	case message.CommandHost:
		if !names.ValidHost(r.Host) {
			return "", fmt.Errorf("a command is for host %q, which is not a host name", r.Host)
		}
		return l.subjects.CommandHost(), nil
	case message.EventRecord:
		return l.subjects.Event(), nil
	default:
		return "", fmt.Errorf("a controller does not write records of kind %d", r.Kind)
	}
}

// Last implements log.Log.
func (l *Log) Last(ctx context.Context) (uint64, error) {
	info, err := l.stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("cannot ask for the last record: %w", err)
	}
	// Not what the server calls the last one: when the disk is full that may be a
	// record that it could not write, and nobody would ever read so far. None is
	// taken out but the oldest.
	if info.State.Msgs == 0 {
		return 0, nil
	}
	return info.State.FirstSeq + info.State.Msgs - 1, nil
}

// First implements log.Log.
func (l *Log) First(ctx context.Context) (uint64, error) {
	info, err := l.stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("cannot ask for the first record: %w", err)
	}
	if info.State.Msgs == 0 {
		return info.State.LastSeq + 1, nil
	}
	return info.State.FirstSeq, nil
}

// Trim implements log.Log.
func (l *Log) Trim(ctx context.Context, upTo uint64) error {
	newest, err := l.last(ctx, l.subjects.Commands())
	switch {
	case err != nil:
		return fmt.Errorf("cannot trim the log: %w", err)
	case newest == nil || newest.Sequence <= upTo:
		return fmt.Errorf("cannot trim the log up to record %d: the newest command or event must stay", upTo)
	}
	if err := l.stream.Purge(ctx, jetstream.WithPurgeSequence(upTo+1)); err != nil {
		return fmt.Errorf("cannot trim the log up to record %d: %w", upTo, err)
	}
	return nil
}

// last gets the newest record of a subject; nil when there is none.
func (l *Log) last(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	msg, err := l.stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return msg, err
}

// whenBack does something each time that the connection to hosts, which may be
// lost while they have theirs, is there again.
func (l *Log) whenBack(ctx context.Context, do func()) {
	connected := l.nats.StatusChanged(nats.CONNECTED)
	defer l.nats.RemoveStatusListener(connected)
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-connected:
			if !open {
				return
			}
			do()
		}
	}
}

// identity tells this log from one that was made anew in its place.
func (l *Log) identity() string {
	return strconv.FormatInt(l.stream.CachedInfo().Created.UnixNano(), 36)
}
