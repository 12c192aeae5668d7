package otlp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/trace"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/otlptest"
)

// TestConfigure checks which variables of OpenTelemetry have spans sent, and where.
func TestConfigure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		endpoint string
		env      string
		want     string
	}{
		"nothing is set":               {"", "", "off"},
		"an endpoint":                  {"http://collector:4318", "", "http://collector:4318/v1/traces"},
		"an endpoint with a path":      {"https://collector/otlp/", "", "https://collector/otlp/v1/traces"},
		"an endpoint for traces":       {"http://collector:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://other:1/in", "http://other:1/in"},
		"the exporter alone":           {"", "OTEL_TRACES_EXPORTER=otlp", "http://localhost:4318/v1/traces"},
		"no exporter":                  {"http://collector:4318", "OTEL_TRACES_EXPORTER=none", "off"},
		"disabled":                     {"http://collector:4318", "OTEL_SDK_DISABLED=true", "off"},
		"another exporter":             {"http://collector:4318", "OTEL_TRACES_EXPORTER=zipkin", `OTEL_TRACES_EXPORTER "zipkin" is not supported; use otlp or none`},
		"gRPC":                         {"http://collector:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", `OTEL_EXPORTER_OTLP_PROTOCOL "grpc" is not supported; use http/protobuf or http/json: a collector listens for them on port 4318`},
		"no URL":                       {"collector:4318", "", `otlp-endpoint "collector:4318" is not the URL of a collector; use one such as http://localhost:4318`},
		"a broken URL":                 {"http://[", "", "otlp-endpoint is not a URL; use one such as http://localhost:4318"},
		"a password":                   {"http://me:secret@collector", "", "otlp-endpoint has a user or a query; a token belongs into OTEL_EXPORTER_OTLP_HEADERS"},
		"a token":                      {"", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c/in?key=secret", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT has a user or a query; a token belongs into OTEL_EXPORTER_OTLP_HEADERS"},
		"a sampler that is not there":  {"http://c", "OTEL_TRACES_SAMPLER=some", `OTEL_TRACES_SAMPLER "some" is unknown; use always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off or parentbased_traceidratio`},
		"a ratio that is none":         {"http://c", "OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=2", `OTEL_TRACES_SAMPLER_ARG "2" is not a ratio; use a number from 0 to 1, such as 0.1`},
		"a ratio that is not a number": {"http://c", "OTEL_TRACES_SAMPLER=parentbased_traceidratio OTEL_TRACES_SAMPLER_ARG=NaN", `OTEL_TRACES_SAMPLER_ARG "NaN" is not a ratio; use a number from 0 to 1, such as 0.1`},
	} {
		env := map[string]string{}
		for _, set := range strings.Fields(c.env) {
			key, value, _ := strings.Cut(set, "=")
			env[key] = value
		}
		got := "off"
		switch config, err := Configure(c.endpoint, func(key string) string { return env[key] }); {
		case err != nil:
			got = err.Error()
		case config != nil:
			got = config.Endpoint
		}
		if got != c.want {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
	}
}

// TestSamples checks which traces are recorded.
func TestSamples(t *testing.T) {
	t.Parallel()
	on, off := trace.Context{Trace: trace.ID{1}, Span: trace.SpanID{1}, Sampled: true}, trace.Context{Trace: trace.ID{1}, Span: trace.SpanID{1}}
	low, high := trace.ID{1}, trace.ID{15: 1, 8: 0x7f}
	for _, c := range []struct {
		env    string
		parent trace.Context
		id     trace.ID
		want   bool
	}{
		{"", trace.Context{}, high, true},
		{"", on, on.Trace, true},
		{"", off, off.Trace, false},
		{"parentbased_always_off", trace.Context{}, low, false},
		{"parentbased_always_off", on, on.Trace, true},
		{"always_on", off, off.Trace, true},
		{"always_off", on, on.Trace, false},
		{"traceidratio 0.1", trace.Context{}, low, true},
		{"traceidratio 0.1", trace.Context{}, high, false},
		{"traceidratio 0.1", on, high, false},
		{"parentbased_traceidratio 0.1", on, high, true},
		{"parentbased_traceidratio 0.1", trace.Context{}, high, false},
	} {
		name, arg, _ := strings.Cut(c.env, " ")
		config, err := Configure("http://c", func(key string) string {
			return map[string]string{samplerVariable: name, samplerArgVariable: arg}[key]
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := (&Exporter{sampler: config.sampler}).Samples(c.parent, c.id); got != c.want {
			t.Errorf("with %q and parent %q, %x is recorded: %t", c.env, c.parent, c.id, got)
		}
	}
}

// sending returns an Exporter that sends to a URL until the test or stop ends it, and its log.
func sending(t *testing.T, endpoint string) (e *Exporter, stop func(), log *safeBuffer) {
	t.Helper()
	config, err := Configure(endpoint, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	log = &safeBuffer{}
	e, err = New(t.Context(), Options{Config: *config, Site: "edge", Version: "1.2.3", Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return e, stop, log
}

// safeBuffer is a buffer that several may use.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// spans makes spans of a kind.
func spans(n int, kind trace.Kind) []trace.Span {
	made := make([]trace.Span, n)
	at := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	for i := range made {
		made[i] = trace.Span{
			Context: trace.Context{Trace: trace.ID{1}, Span: trace.SpanID{byte(i >> 8), byte(i), 1}, Sampled: true}, Name: "run", Kind: kind, Start: at, End: at.Add(time.Second),
			Attributes: []trace.Attribute{trace.Text(trace.TenantKey, "acme"), trace.Number(trace.RunKey, 41)},
		}
	}
	return made
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen: " + what)
		}
	}
}

// TestSend checks what a collector is sent.
func TestSend(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	e, _, _ := sending(t, c.URL)
	sent := spans(1200, trace.Client)
	sent[0].Failed, sent[0].Status, sent[0].Parent = true, "space", trace.SpanID{7}
	sent[0].Events = []trace.Event{{Name: "paused", At: sent[0].Start}}
	e.Put(sent...)
	eventually(t, "all are sent", func() bool { return e.Figures() == Figures{Exported: 1200} })
	got := c.Spans()
	if len(got) != 1200 {
		t.Fatalf("%d spans were sent", len(got))
	}
	want := otlptest.Span{
		Trace: "01000000000000000000000000000000", ID: "0000010000000000", Parent: "0700000000000000", Name: "run", Kind: "SPAN_KIND_CLIENT", Start: got[0].Start, End: got[0].End,
		Attributes: map[string]string{"osupgrade.tenant": "acme", "osupgrade.run": "41"}, Events: []string{"paused"}, Failed: true, Status: "space",
	}
	if fmt.Sprint(got[0]) != fmt.Sprint(want) || !got[0].Start.Equal(sent[0].Start) || !got[0].End.Equal(sent[0].End) || got[1].Parent != "" {
		t.Errorf("the spans are sent as\n%+v\n%+v", got[0], got[1])
	}
	if r := c.Resource(); r["service.name"] != "osupgrade-agent" || r["service.version"] != "1.2.3" || r["osupgrade.site"] != "edge" {
		t.Errorf("the sender is %v", r)
	}
}

// TestCollectorDown checks that a collector that is not there holds up nobody and fills no
// memory, and is sent what was kept when it is back.
func TestCollectorDown(t *testing.T) {
	t.Parallel()
	down := httptest.NewServer(http.NotFoundHandler())
	address := down.Listener.Addr().String()
	down.Close()
	e, stop, log := sending(t, "http://"+address)
	begun := time.Now()
	e.Put(spans(2*maxQueue, trace.Server)...)
	e.Put(spans(2*maxQueue, trace.Internal)...)
	if took := time.Since(begun); took > time.Second {
		t.Errorf("to hand over spans took %s", took)
	}
	if f := e.Figures(); f.Queued != maxQueue || f.Dropped != 3*maxQueue || f.Exported+f.Rejected != 0 {
		t.Errorf("the figures are %+v", f)
	}
	eventually(t, "it is logged", func() bool { return strings.Contains(log.String(), "the collector takes no traces") })
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, log)
	}
	begun = time.Now()
	stop()
	if took := time.Since(begun); took > 2*flushTimeout {
		t.Errorf("to stop took %s", took)
	}
}

// TestCollectorIsBack checks that spans are kept while the collector is away for a while.
func TestCollectorIsBack(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	c.Instead(func(w http.ResponseWriter, _ *http.Request) { // The connection breaks.
		if hijacked, _, err := w.(http.Hijacker).Hijack(); err == nil { //nolint:forcetypeassert // a server of HTTP/1
			_ = hijacked.Close()
		}
	})
	e, _, log := sending(t, c.URL)
	e.Put(spans(3, trace.Internal)...)
	eventually(t, "it is logged", func() bool { return strings.Contains(log.String(), "takes no traces") })
	c.Instead(nil)
	eventually(t, "all are sent", func() bool { return e.Figures() == Figures{Exported: 3} && len(c.Spans()) == 3 })
}

// TestHostileCollector checks that a collector cannot fill the log, memory or time with its
// answers, and that the spans that it refuses are counted.
func TestHostileCollector(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"refuses at length": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "\x1b[31m"+strings.Repeat("no\n", 10_000))
		},
		"accepts without end": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
		},
		"sends elsewhere without end": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		},
		"answers no protobuf": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = io.WriteString(w, "\xff\xff\xff")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := otlptest.New(t)
			c.Instead(answer)
			e, stop, log := sending(t, c.URL)
			e.Put(spans(3, trace.Internal)...)
			eventually(t, "it is logged", func() bool { return strings.Contains(log.String(), "takes no traces") })
			if f := e.Figures(); f.Exported != 0 || f.Rejected+uint64(f.Queued) != 3 {
				eventually(t, "the spans are counted", func() bool { return e.Figures().Rejected == 3 })
			}
			if len(log.String()) > 1000 || strings.Contains(log.String(), "\\x1b") {
				t.Errorf("it is logged as\n%s", log)
			}
			stop()
		})
	}
}

// TestStopSends checks that what is queued is sent when the site stops.
func TestStopSends(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	e, stop, _ := sending(t, c.URL)
	e.Put(spans(700, trace.Internal)...)
	stop()
	if got := len(c.Spans()); got != 700 {
		t.Errorf("%d of 700 spans were sent", got)
	}
}

// TestExampleCollector checks that the configuration of a collector among the examples
// listens where the guide has a site send to, and names in its pipeline what it configures.
func TestExampleCollector(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../examples/monitoring/collector.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Receivers struct {
			OTLP struct {
				Protocols struct{ HTTP struct{ Endpoint string } }
			}
		}
		Processors, Exporters map[string]any
		Service               struct {
			Pipelines map[string]struct{ Receivers, Processors, Exporters []string }
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../../docs/guides/tracing.md")
	endpoint := config.Receivers.OTLP.Protocols.HTTP.Endpoint
	if err != nil || endpoint == "" || !strings.Contains(string(guide), "otlp-endpoint: http://"+endpoint+"\n") {
		t.Errorf("the collector listens at %q, the guide sends elsewhere (%v)", endpoint, err)
	}
	pipeline := config.Service.Pipelines["traces"]
	if !slices.Equal(pipeline.Receivers, []string{"otlp"}) || len(pipeline.Exporters) == 0 {
		t.Errorf("the pipeline is %+v", pipeline)
	}
	for _, name := range pipeline.Processors {
		if _, ok := config.Processors[name]; !ok {
			t.Errorf("processor %s is not configured", name)
		}
	}
	for _, name := range pipeline.Exporters {
		if _, ok := config.Exporters[name]; !ok {
			t.Errorf("exporter %s is not configured", name)
		}
	}
}
