package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/durability"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// Bounds of the reports of runs that are kept of a tenant, in bytes and in number; the oldest
// go first.
const (
	maxRunReportBytes = 256 << 20
	maxRunReports     = 100_000
)

// headerCut marks a report of which the beginning is left out.
const headerCut = "Osu-Cut"

// reports are what hosts report. Each kind has a bucket of its own, so that no kind takes the
// place of another and a list reads nothing else from disk. The kinds of runs share a stream for
// each tenant, with one message for each report.
type reports struct {
	js      jetstream.JetStream
	buckets map[*report.Kind]reportBucket
	mu      sync.Mutex
	ofRuns  map[string]jetstream.Stream
}

type reportBucket struct {
	*divided
	stream jetstream.Stream
}

func openReports(ctx context.Context, js jetstream.JetStream) (*reports, error) {
	r := &reports{js: js, buckets: map[*report.Kind]reportBucket{}, ofRuns: map[string]jetstream.Stream{}}
	for _, kind := range report.OfHosts() {
		kv, err := bucket(ctx, js, kind.Bucket, kind.Name+" of hosts, by tenant and host")
		if err != nil {
			return nil, err
		}
		stream, err := js.Stream(ctx, durability.BucketStream(kind.Bucket))
		if err != nil {
			return nil, fmt.Errorf("cannot look at bucket %s: %w", kind.Bucket, err)
		}
		r.buckets[kind] = reportBucket{divide(js, kv), stream}
	}
	return r, nil
}

// stream returns the stream that has the reports of a kind. That of the reports of runs is made
// when it is missing.
func (r *reports) stream(ctx context.Context, tenant string, kind *report.Kind) (jetstream.Stream, error) {
	if !kind.OfRun {
		return r.buckets[kind].stream, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.ofRuns[tenant]; s != nil {
		return s, nil
	}
	s, err := durability.Open(ctx, r.js, jetstream.StreamConfig{
		Name: "osu-output-" + tenant, Description: "plans and outputs of the runs of tenant " + tenant, Subjects: []string{"osu-output." + tenant + ".*.*.*"},
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, MaxMsgsPerSubject: 1,
		MaxBytes: maxRunReportBytes, MaxMsgs: maxRunReports, AllowDirect: true,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot open the reports of runs of tenant %s: %w", tenant, err)
	}
	r.ofRuns[tenant] = s
	return s, nil
}

// reportSubject is the subject of a report; key is the host's name as one subject token, or a
// wildcard.
func reportSubject(tenant, key string, id report.ID) string {
	if !id.Kind.OfRun {
		return "$KV." + id.Kind.Bucket + "." + tenant + "." + key
	}
	part := id.Part
	if part == "" {
		part = id.Kind.Name
	}
	return strings.Join([]string{"osu-output", tenant, strconv.FormatUint(id.Run, 10), key, part}, ".")
}

// PutReport keeps a report that report.Parse has checked, in place of an earlier one; key is the
// host's name as one subject token. What is kept already is not written again unless its time
// counts, what is damaged is replaced. ErrConflict means that another report was kept meanwhile.
func (s *Store) PutReport(ctx context.Context, tenant, key string, r report.Report) error {
	cannot := func(err error) error { return fmt.Errorf("cannot keep the %s of host %s: %w", r.ID, key, err) }
	kept, revision, err := s.report(ctx, tenant, key, r.ID)
	switch {
	case err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDamaged):
		return err
	case r.Repeats(kept):
		return nil
	}
	e, err := r.Entry(kept)
	if err != nil {
		return cannot(err)
	}
	msg := nats.NewMsg(reportSubject(tenant, key, r.ID))
	for name, value := range map[string]string{format.Header: e.Format, headerSummary: e.Summary} {
		if value != "" {
			msg.Header.Set(name, value)
		}
	}
	if e.Cut {
		msg.Header.Set(headerCut, "true")
	}
	msg.Data = e.Data
	if _, err := s.reports.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(revision)); err != nil {
		return cannot(translate(err))
	}
	return nil
}

// Report returns a report that is kept. The error is ErrNotFound when there is none.
func (s *Store) Report(ctx context.Context, tenant, key string, id report.ID) (report.Kept, error) {
	kept, _, err := s.report(ctx, tenant, key, id)
	return kept, err
}

// report returns a report that is kept, and the revision of its entry, which also an entry that
// is damaged or deleted has.
func (s *Store) report(ctx context.Context, tenant, key string, id report.ID) (kept report.Kept, revision uint64, err error) {
	stream, err := s.reports.stream(ctx, tenant, id.Kind)
	if err != nil {
		return report.Kept{}, 0, err
	}
	msg, err := stream.GetLastMsgForSubject(ctx, reportSubject(tenant, key, id))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return report.Kept{}, 0, fmt.Errorf("the %s of host %s %w", id, key, ErrNotFound)
	case err != nil:
		return report.Kept{}, 0, fmt.Errorf("cannot read the %s of host %s: %w", id, key, err)
	case isDeleted(msg.Header):
		return report.Kept{}, msg.Sequence, fmt.Errorf("the %s of host %s %w", id, key, ErrNotFound)
	}
	if kept, err = id.Kind.Read(entryOf(msg.Header, msg.Data), msg.Time); err != nil {
		err = fmt.Errorf("the stored %s of host %s %w", id, key, err)
	}
	return kept, msg.Sequence, err
}

func entryOf(h nats.Header, data []byte) report.Entry {
	return report.Entry{Format: h.Get(format.Header), Summary: h.Get(headerSummary), Cut: h.Get(headerCut) != "", Data: data}
}

// isDeleted reports whether a message of a bucket says that the entry is deleted.
func isDeleted(h nats.Header) bool { return h.Get("KV-Operation") != "" }

// Reports returns the reports of a kind of a tenant's hosts, by the host's name as one subject
// token. One that cannot be read is left out: its host sends another.
func (s *Store) Reports(ctx context.Context, tenant string, kind *report.Kind) (map[string]report.Kept, error) {
	found := map[string]report.Kept{}
	err := s.list(ctx, tenant, kind, false, func(key string, msg jetstream.Msg, about *jetstream.MsgMetadata) {
		if kept, err := kind.Read(entryOf(msg.Headers(), msg.Data()), about.Timestamp); err == nil {
			found[key] = kept
		}
	})
	return found, err
}

// Summaries returns the summaries of the reports of a kind of a tenant's hosts, by the host's
// name as one subject token. It reads no report. One that cannot be read, or of a format that this
// version does not read, is left out.
func (s *Store) Summaries(ctx context.Context, tenant string, kind *report.Kind) (map[string]report.Summary, error) {
	found := map[string]report.Summary{}
	err := s.list(ctx, tenant, kind, true, func(key string, msg jetstream.Msg, about *jetstream.MsgMetadata) {
		if e := entryOf(msg.Headers(), nil); kind.Format.CheckHeader(e.Format) == nil && json.Valid([]byte(e.Summary)) {
			found[key] = report.Summary{At: about.Timestamp, JSON: e.Summary}
		}
	})
	return found, err
}

// list calls take with each entry of a kind of a tenant, by the host's name as one subject token.
func (s *Store) list(ctx context.Context, tenant string, kind *report.Kind, headersOnly bool, take func(string, jetstream.Msg, *jetstream.MsgMetadata)) error {
	cannot := func(err error) error {
		return fmt.Errorf("cannot list the %s of tenant %s: %w", kind.Name, tenant, err)
	}
	consumer, err := s.reports.buckets[kind].stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{reportSubject(tenant, "*", report.ID{Kind: kind})}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: headersOnly,
	})
	if err != nil {
		return cannot(err)
	}
	left := consumer.CachedInfo().NumPending
	if left == 0 {
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return cannot(err)
	}
	defer messages.Stop()
	for left > 0 {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return cannot(err)
		}
		about, err := msg.Metadata()
		if err != nil {
			return cannot(err)
		}
		left = about.NumPending
		if !isDeleted(msg.Headers()) {
			take(strings.TrimPrefix(msg.Subject(), reportSubject(tenant, "", report.ID{Kind: kind})), msg, about)
		}
	}
	return nil
}

// Reported is a report of a host, as a watch sees it.
type Reported struct {
	// Key is the host's name as one subject token; empty at the end of what was there when
	// the watch began.
	Key string
	// Kept has no body when the report is gone.
	report.Kept
	// Err is why the report that is there cannot be read.
	Err error
	// Number is the revision's.
	Number uint64
}

// WatchReports calls see with the reports of a kind of a tenant's hosts, now and after each
// change. The kind has a history: a watch sees no headers, and such an entry says its format
// itself. WatchReports returns when ctx ends or the store is gone.
func (s *Store) WatchReports(ctx context.Context, tenant string, kind *report.Kind, see func(Reported)) error {
	err := s.reports.buckets[kind].watch(ctx, tenant, func(entry jetstream.KeyValueEntry) {
		if entry == nil {
			see(Reported{})
			return
		}
		r := Reported{Key: entry.Key()[len(tenant)+1:], Number: entry.Revision()}
		if entry.Operation() == jetstream.KeyValuePut {
			r.Kept, r.Err = kind.Read(report.Entry{Data: entry.Value()}, entry.Created())
		}
		r.At = entry.Created()
		see(r)
	})
	return fmt.Errorf("cannot watch the %s of tenant %s: %w", kind.Name, tenant, err)
}

// ReportsNumber is the number of the last change of any report of a kind of a tenant's hosts; 0
// when there was none. A watch that has seen it has seen them all.
func (s *Store) ReportsNumber(ctx context.Context, tenant string, kind *report.Kind) (uint64, error) {
	last, err := s.reports.buckets[kind].stream.GetLastMsgForSubject(ctx, reportSubject(tenant, "*", report.ID{Kind: kind}))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot ask for the last %s of tenant %s: %w", kind.Name, tenant, err)
	}
	return last.Sequence, nil
}
