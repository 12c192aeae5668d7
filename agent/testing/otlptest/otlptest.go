// Package otlptest has a collector of OpenTelemetry for tests: it keeps the spans that it
// is sent, and fails on demand.
package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

// Collector is a collector on loopback.
type Collector struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []Span
	resource map[string]string
	headers  http.Header
	// instead answers in place of the collector; nil while it works.
	instead http.HandlerFunc
}

// Span is a span as the collector was sent it, ids in hexadecimal.
type Span struct {
	Trace, ID, Parent, Name string
	Start, End              time.Time
	Kind                    string
	// Attributes are all as text.
	Attributes map[string]string
	Events     []string
	Failed     bool
	Status     string
}

// New starts a collector that runs until the test ends.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// Instead has something else answer in place of the collector; nil has it work again.
func (c *Collector) Instead(answer http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.instead = answer
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	instead := c.instead
	c.mu.Unlock()
	if instead != nil {
		instead(w, r)
		return
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	sent, err := io.ReadAll(body)
	var request collectorpb.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(sent, &request)
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
		http.Error(w, "this is no request for POST /v1/traces", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = r.Header
	for _, of := range request.ResourceSpans {
		c.resource = texts(of.Resource.Attributes)
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				kept := Span{
					Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId), Name: s.Name, Kind: s.Kind.String(),
					Start: time.Unix(0, int64(s.StartTimeUnixNano)), End: time.Unix(0, int64(s.EndTimeUnixNano)), Attributes: texts(s.Attributes),
					Failed: s.Status.GetCode() != 0, Status: s.Status.GetMessage(),
				}
				for _, e := range s.Events {
					kept.Events = append(kept.Events, e.Name)
				}
				c.spans = append(c.spans, kept)
			}
		}
	}
}

func texts(attributes []*commonpb.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range attributes {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			all[a.Key] = v.StringValue
		default:
			all[a.Key] = a.Value.String()[len("int_value:"):]
		}
	}
	return all
}

// Spans returns the spans that were sent, in the order in which they came. One that was
// sent twice is there twice.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Resource returns what was said of the sender, Headers those of the last request.
func (c *Collector) Resource() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resource
}

// Headers returns the headers of the last request.
func (c *Collector) Headers() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers
}
