// Package otlp sends spans to a collector of OpenTelemetry, over OTLP/HTTP with the client
// of OpenTelemetry.
//
// It decides when spans are sent, and which are dropped: nobody waits for a collector. What
// it cannot send yet is in a queue of limited length; what finds no place there is dropped
// and counted. It keeps nothing on disk. A controller that starts hands over the spans of
// the newest run again, with the ids that they had.
//
// The queue is not the SDK's NewBatchSpanProcessor: that gives a batch up which the exporter
// could not send, drops without a count that anybody can read, and has one bound for runs
// and requests.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	otel "go.opentelemetry.io/otel/trace"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/trace"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

const (
	// maxQueue is how many spans wait to be sent, maxRequests how many of them are of
	// requests: who sends many requests does not crowd out the runs.
	maxQueue    = 8192
	maxRequests = maxQueue / 2
	// maxBatch is how many spans are sent at once.
	maxBatch = 512
	// collectFor is how long further spans are waited for before some are sent.
	collectFor = time.Second
	// firstPause and longestPause bound the wait before a collector that cannot be reached
	// is tried again; retryFor is how long the client tries again while one answers that it
	// is busy.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	retryFor     = time.Minute
	// flushTimeout bounds the last try, when the site stops.
	flushTimeout = 2 * time.Second
	// maxAnswer is how much is read of an answer of a collector, maxShown how much of an
	// error is logged: a collector could fill memory and disk.
	maxAnswer = 64 << 10
	maxShown  = 300
)

// Options are what an Exporter is made with.
type Options struct {
	Config
	// Site is the name of the site, Version that of the program.
	Site, Version string
	Log           *slog.Logger
}

// Exporter sends spans.
type Exporter struct {
	sampler  sdk.Sampler
	client   otlptrace.Client
	resource *resourcepb.Resource
	scope    *commonpb.InstrumentationScope
	log      *slog.Logger
	queued   wait.Signal
	failing  throttle.Failing

	mu       sync.Mutex
	queue    []trace.Span
	requests int
	figures  Figures
}

// Figures are what an Exporter measures.
type Figures struct {
	// Exported counts the spans that a collector has accepted, Rejected those that it has
	// not, and Dropped those for which there was no place in the queue.
	Exported, Rejected, Dropped uint64
	// Queued is how many wait to be sent.
	Queued int
}

// New makes an Exporter. It sends nothing before Run.
func New(ctx context.Context, o Options) (*Exporter, error) {
	described, err := describe(ctx, o.Site, o.Version)
	if err != nil {
		return nil, err
	}
	client := otlptracehttp.NewClient(
		otlptracehttp.WithEndpointURL(o.Endpoint), otlptracehttp.WithMaxResponseSize(maxAnswer),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: firstPause, MaxInterval: longestPause, MaxElapsedTime: retryFor}),
	)
	if err := client.Start(ctx); err != nil {
		return nil, fmt.Errorf("cannot send traces to %s: %w", o.Endpoint, err)
	}
	return &Exporter{
		sampler: o.sampler, client: client, resource: described, log: o.Log, queued: wait.NewSignal(),
		scope: &commonpb.InstrumentationScope{Name: "github.com/osupgrade/terraform-provider-osupgrade/agent", Version: o.Version},
	}, nil
}

// Samples implements trace.Exporter.
func (e *Exporter) Samples(parent trace.Context, id trace.ID) bool {
	ctx := context.Background()
	if parent.Valid() {
		var flags otel.TraceFlags
		ctx = otel.ContextWithRemoteSpanContext(ctx, otel.NewSpanContext(otel.SpanContextConfig{
			TraceID: otel.TraceID(parent.Trace), SpanID: otel.SpanID(parent.Span), TraceFlags: flags.WithSampled(parent.Sampled), Remote: true,
		}))
	}
	return e.sampler.ShouldSample(sdk.SamplingParameters{ParentContext: ctx, TraceID: otel.TraceID(id)}).Decision == sdk.RecordAndSample
}

// Put implements trace.Exporter.
func (e *Exporter) Put(spans ...trace.Span) {
	e.mu.Lock()
	for _, s := range spans {
		request := s.Kind == trace.Server
		if len(e.queue) >= maxQueue || request && e.requests >= maxRequests {
			e.figures.Dropped++
			continue
		}
		if request {
			e.requests++
		}
		e.queue = append(e.queue, s)
	}
	e.mu.Unlock()
	e.queued.Set()
}

// Figures returns what is measured.
func (e *Exporter) Figures() Figures {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.figures
	f.Queued = len(e.queue)
	return f
}

// Run sends spans until ctx ends, and then those that are queued if the collector takes
// them at once.
func (e *Exporter) Run(ctx context.Context) {
	pause := firstPause
	for waitFor(ctx, e.queued) {
		_ = wait.Sleep(ctx, collectFor)
		for e.more() && ctx.Err() == nil {
			if e.send(ctx) {
				pause = firstPause
				continue
			}
			_ = wait.Sleep(ctx, pause)
			pause = min(2*pause, longestPause)
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	for e.more() && e.send(last) {
	}
	_ = e.client.Stop(last)
}

// waitFor waits for a signal, and returns false when ctx has ended.
func waitFor(ctx context.Context, signal wait.Signal) bool {
	select {
	case <-ctx.Done():
		return false
	case <-signal:
		return true
	}
}

func (e *Exporter) more() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.queue) > 0
}

// send sends the oldest spans of the queue and takes them out of it, unless the collector
// cannot be reached. It is called by one goroutine.
func (e *Exporter) send(ctx context.Context) bool {
	e.mu.Lock()
	batch := e.queue[:min(len(e.queue), maxBatch)]
	e.mu.Unlock()
	err := e.client.UploadTraces(ctx, []*tracepb.ResourceSpans{{Resource: e.resource, ScopeSpans: []*tracepb.ScopeSpans{{Scope: e.scope, Spans: protoSpans(batch)}}}})
	if ctx.Err() == nil {
		e.failing.Note(e.log, time.Now(), shown(err), "the collector takes no traces", "the collector takes traces again")
	}
	if _, unreachable := errors.AsType[*url.Error](err); unreachable || err != nil && ctx.Err() != nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range batch {
		if s.Kind == trace.Server {
			e.requests--
		}
	}
	if err == nil {
		e.figures.Exported += uint64(len(batch))
	} else {
		e.figures.Rejected += uint64(len(batch))
	}
	e.queue = append([]trace.Span(nil), e.queue[len(batch):]...)
	return true
}

// shown is an error with what a collector has answered fit for the log.
func shown(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(message.CleanText(text.Cut(err.Error(), maxShown, "…")))
}

// kinds are the kinds of spans as OTLP has them.
var kinds = map[trace.Kind]tracepb.Span_SpanKind{
	trace.Internal: tracepb.Span_SPAN_KIND_INTERNAL, trace.Server: tracepb.Span_SPAN_KIND_SERVER, trace.Client: tracepb.Span_SPAN_KIND_CLIENT,
}

func protoSpans(spans []trace.Span) []*tracepb.Span {
	made := make([]*tracepb.Span, len(spans))
	for i, s := range spans {
		made[i] = protoSpan(s)
	}
	return made
}

func protoSpan(s trace.Span) *tracepb.Span {
	made := &tracepb.Span{
		TraceId: s.Trace[:], SpanId: s.Span[:], Name: s.Name, Kind: kinds[s.Kind],
		StartTimeUnixNano: uint64(s.Start.UnixNano()), EndTimeUnixNano: uint64(s.End.UnixNano()),
		Attributes: protoAttributes(s.Attributes), Flags: uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK),
	}
	if s.Sampled {
		made.Flags |= 1
	}
	if s.Parent != (trace.SpanID{}) {
		made.ParentSpanId = s.Parent[:]
	}
	if s.Remote {
		made.Flags |= uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	if s.Failed {
		made.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: s.Status}
	}
	for _, event := range s.Events {
		made.Events = append(made.Events, &tracepb.Span_Event{TimeUnixNano: uint64(event.At.UnixNano()), Name: event.Name, Attributes: protoAttributes(event.Attributes)})
	}
	return made
}

func protoAttributes(all []trace.Attribute) []*commonpb.KeyValue {
	made := make([]*commonpb.KeyValue, len(all))
	for i, a := range all {
		made[i] = &commonpb.KeyValue{Key: a.Key, Value: textValue(a.Text)}
		if a.IsNumber {
			made[i].Value = &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: a.Number}}
		}
	}
	return made
}

func textValue(text string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: text}}
}
