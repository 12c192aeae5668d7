// Package jetstream carries the log over NATS JetStream: one
// stream per tenant, no server-side consumer per host.
//
// It decides how a record becomes a NATS message and back, and on which subject and
// connection it travels. It never looks into a body. Package gate decides who may
// write, and what a host may read.
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

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/durability"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Headers of a record for members that its JSON body does not have.
const (
	headerRun      = "Osu-Run"
	headerHost     = "Osu-Host"
	headerProducer = "Osu-Producer"
	// headerEnvironment is of a prepare: it is in the subject, too.
	headerEnvironment = "Osu-Environment"
	// headerEpoch is the epoch of the lease that a record belongs to.
	headerEpoch = "Osu-Epoch"
	// headerChecks is set when message.Record.Checks is.
	headerChecks = "Osu-Checks"
	// headerRelease is of a prepare: message.Record.Release.
	headerRelease = "Osu-Release"
	// headerRollback is of a prepare: message.Record.Rollback.
	headerRollback = "Osu-Rollback"
	// headerOutcome, headerClass and headerUpToDate are of a reply: what of its result is not
	// in the body. A host sends them with its reply, too.
	headerOutcome  = "Osu-Outcome"
	headerClass    = "Osu-Class"
	headerUpToDate = "Osu-Up-To-Date"
)

// Headers of a message of a host: its worker, the worker's process, and the newest
// protocol that this process speaks.
const (
	headerWorker      = "Osu-Worker"
	headerIncarnation = "Osu-Incarnation"
	headerProtocol    = "Osu-Protocol"
	// headerLog is the identity of the log that the message is about.
	headerLog = "Osu-Log"
)

const (
	// maxLog bounds the log of one tenant, in bytes. A full log refuses new
	// records; it never drops old ones unseen.
	maxLog = 1 << 30
	// wrongLastSequence is the server's error when the expected last sequence
	// of a subject is not the one on the log.
	wrongLastSequence jetstream.ErrorCode = 10071
	// askAgain is how long a request for more of the log lasts, and stillThere how often the
	// server confirms meanwhile that it is there. Each tenant has two followers, and an idle
	// site does little but ask and answer for them.
	askAgain, stillThere = 10 * time.Minute, 30 * time.Second
	// appendTimeout bounds the wait for one acknowledgement.
	appendTimeout = 5 * time.Second
)

// Log is one tenant's log for its controller.
type Log struct {
	subjects log.Subjects
	// nats is the connection to the hosts, js that to the log. They are two
	// connections where hosts are not trusted.
	nats   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	// identity is that of the log.
	identity string
	// gate checks who holds a host's lease; nil when this process has no gate.
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

// OpenApart creates the tenant's stream, or brings its settings up to date. Messages
// to and from hosts have a connection of their own, so that a flood of them does not
// slow down the agent's connection to the log, nor other tenants.
func OpenApart(ctx context.Context, nc, hosts *nats.Conn, tenant string) (*Log, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	subjects := log.Subjects{Tenant: tenant}
	l := &Log{subjects: subjects, nats: hosts, js: js}
	if l.stream, l.identity, err = durability.OpenIdentified(ctx, js, streamConfig(subjects)); err != nil {
		return nil, fmt.Errorf("cannot open the log of tenant %s: %w", tenant, err)
	}
	return l, nil
}

func streamConfig(s log.Subjects) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: s.Stream(), Description: "the log of tenant " + s.Tenant, Subjects: s.All(),
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
		MaxBytes: maxLog, DenyDelete: true, AllowDirect: true,
	}
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
	if r.Environment != "" {
		msg.Header.Set(headerEnvironment, r.Environment)
	}
	setEpoch(msg.Header, r.Epoch)
	if r.Checks {
		msg.Header.Set(headerChecks, "true")
	}
	if r.Release != "" {
		msg.Header.Set(headerRelease, r.Release)
	}
	if r.Rollback != "" {
		msg.Header.Set(headerRollback, r.Rollback)
	}
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
// under way (10164). That append may still fail, so the result is unknown.
func rejected(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == wrongLastSequence
}

func (l *Log) subject(r message.Record) (string, error) {
	switch r.Kind {
	case message.CommandAll:
		return l.subjects.Prepare(r.Environment), nil
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
	// Not the last sequence of the server: on a full disk that may be a record that
	// was never written, and no reader would ever reach it. Only the oldest records
	// are ever removed.
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

// Skip has the log go on at a sequence: those before it are taken by events that say
// so. It is called while no controller writes.
func (l *Log) Skip(ctx context.Context, to uint64) error {
	newest, err := gateLog{l}.NewestCommand(ctx)
	if err != nil {
		return fmt.Errorf("cannot look for the end of the log: %w", err)
	}
	last, err := l.Last(ctx)
	if err != nil {
		return err
	}
	event := message.EncodeEvent(message.Skipped{To: to})
	for ; last+1 < to; last++ {
		if newest, err = l.Append(ctx, message.Record{Kind: message.EventRecord, Body: event}, newest); err != nil {
			return err
		}
	}
	return nil
}

// Renew gives the log a new identity: its hosts know that it is not, or need not be,
// the log that they have seen.
func (l *Log) Renew(ctx context.Context) (err error) {
	l.identity, err = durability.Renew(ctx, l.js, l.subjects.Stream())
	return err
}

// last gets the newest record of a subject; nil when there is none.
func (l *Log) last(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	msg, err := l.stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return msg, err
}

// whenBack calls a function each time the connection to the hosts is back. It may be
// lost while the hosts keep theirs.
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

// Identity implements log.Log.
func (l *Log) Identity() string { return l.identity }

// Follow implements log.Log.
func (l *Log) Follow(ctx context.Context, from uint64, deliver func(message.Record)) error {
	return l.follow(ctx, from, nil, deliver)
}

// follow delivers the records of some subjects, or of all, by an ordered consumer.
// That lives in memory and recovers its position by itself.
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
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { l.tellLost(ctx, err, lost) }),
		jetstream.PullExpiry(askAgain), jetstream.PullHeartbeat(stillThere))
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

// tellLost checks after an error of a consumer whether the stream still exists. If it
// does, the consumer recovers by itself.
func (l *Log) tellLost(ctx context.Context, cause error, lost chan<- error) {
	if _, err := l.stream.Info(ctx); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return
	}
	select {
	case lost <- fmt.Errorf("the log of tenant %s is gone: %w", l.subjects.Tenant, cause):
	default:
	}
}

// Read implements log.Log without a consumer: the number of consumers of a server is
// limited.
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

// record converts a message of a consumer to a record.
func (l *Log) record(msg jetstream.Msg) (message.Record, error) {
	raw := &jetstream.RawStreamMsg{Subject: msg.Subject(), Header: msg.Headers(), Data: msg.Data()}
	if meta, err := msg.Metadata(); err == nil {
		raw.Sequence, raw.Time = meta.Sequence.Stream, meta.Timestamp
	}
	return l.stored(raw)
}

// stored converts a message of the stream to a record. A message that no honest
// writer writes becomes a record without a kind, so that its sequence counts as seen.
// A record of a format that this version does not read is an error: without the
// record, the decisions of this version would be wrong.
func (l *Log) stored(msg *jetstream.RawStreamMsg) (message.Record, error) {
	if err := format.Record.CheckHeader(msg.Header.Get(format.Header)); err != nil {
		return message.Record{}, fmt.Errorf("cannot read record %d of the log of tenant %s: %w", msg.Sequence, l.subjects.Tenant, err)
	}
	r, err := l.subjects.Parse(msg.Subject)
	if r.Kind == message.CommandHost {
		r.Host = msg.Header.Get(headerHost)
	}
	if err != nil || r.Kind == message.CommandHost && !names.ValidHost(r.Host) || r.Environment != msg.Header.Get(headerEnvironment) {
		r = message.Record{}
	}
	r.Seq, r.Time, r.Body = msg.Sequence, msg.Time.UTC(), msg.Data
	return withHeaders(r, msg.Header), nil
}

// withHeaders sets the members of a record that are in the headers, such as the run
// of a command. The run of a reply is in its subject.
func withHeaders(r message.Record, header nats.Header) message.Record {
	if run, err := strconv.ParseUint(header.Get(headerRun), 10, 64); err == nil && r.Kind != message.ReplyRecord {
		r.Run = run
	}
	if epoch, err := strconv.ParseUint(header.Get(headerEpoch), 10, 64); err == nil {
		r.Epoch = epoch
	}
	if r.Kind == message.CommandAll {
		r.Release, r.Rollback = header.Get(headerRelease), header.Get(headerRollback)
	}
	r.Checks = (r.Kind == message.CommandAll || r.Kind == message.CommandHost) && header.Get(headerChecks) != ""
	if r.Kind == message.ReplyRecord {
		r.Outcome = message.OutcomeBeside(header.Get(headerOutcome))
		r.Class, _ = message.ParseClass(header.Get(headerClass)) // One that this version does not know is none.
		r.UpToDate = header.Get(headerUpToDate) != ""
	}
	return r
}
