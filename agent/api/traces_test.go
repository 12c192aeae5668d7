package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/tell/otlp"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/otlptest"
)

// TestTraces checks which requests are spans, what is said of them, and what is answered.
func TestTraces(t *testing.T) {
	t.Parallel()
	collector := otlptest.New(t)
	traces, err := otlp.Configure(collector.URL, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	d, err := dev.Start(t.Context(), dev.Options{Dir: t.TempDir(), Hosts: 1, Traces: traces})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	c := &caller{t: t, dev: d}
	const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	parent := "00-" + trace + "-" + caller + "-01"
	c.call("GET", "/healthz", "", "traceparent", parent)
	c.call("GET", "/metrics", "", "traceparent", parent)
	c.call("GET", configPath, "", "traceparent", "00-"+trace+"-"+caller+"-00")
	answered := c.call("PUT", configPath, body, "traceparent", parent, "X-Request-Id", "deploy-7")
	refused := c.call("GET", "/v1/secret-path-of-somebody", "", "traceparent", "00-damaged")
	two, err := http.NewRequestWithContext(t.Context(), "GET", d.Endpoint+configPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	two.Header["Traceparent"] = []string{parent, parent}
	two.Header.Set("Authorization", "Bearer "+d.Token)
	c.send(two)
	c.call("GET", configPath, "", "Authorization", "Bearer wrong", "traceparent", parent)
	if err := d.Close(); err != nil { // It sends what is left.
		t.Fatal(err)
	}
	var got []string
	spans := slices.DeleteFunc(collector.Spans(), func(s otlptest.Span) bool { return s.Kind != "SPAN_KIND_SERVER" })
	for _, s := range spans {
		where := "a trace of its own"
		if s.Trace == trace {
			where = "the trace"
		}
		got = append(got, fmt.Sprintf("%s %s, parent %s: %s %s", s.Name, s.Attributes["http.response.status_code"], s.Parent, where, s.Attributes["osupgrade.request_id"][:min(8, len(s.Attributes["osupgrade.request_id"]))]))
		if s.Start.After(s.End) || time.Since(s.Start) > time.Minute {
			t.Errorf("%s is from %s to %s", s.Name, s.Start, s.End)
		}
		for _, value := range s.Attributes {
			if strings.Contains(value, "secret") || strings.Contains(value, "demo") || strings.Contains(value, d.Token) {
				t.Errorf("%s says %q", s.Name, value)
			}
		}
	}
	route := "/v1/config/tenants/{tenant}/os-upgrade"
	want := []string{
		"PUT " + route + " 201, parent " + caller + ": the trace deploy-7", "GET 404, parent : a trace of its own ",
		"GET " + route + " 200, parent : a trace of its own ", "GET " + route + " 401, parent " + caller + ": the trace ",
	}
	if len(got) != len(want) || !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Fatalf("the spans are\n%s", strings.Join(got, "\n"))
	}
	if response := answered.header.Get("Traceresponse"); response != "00-"+trace+"-"+spans[0].ID+"-01" {
		t.Errorf("the answer names %q, the span is %s", response, spans[0].ID)
	}
	if response := refused.header.Get("Traceresponse"); !strings.HasPrefix(response, "00-"+spans[1].Trace+"-") {
		t.Errorf("the answer names %q, the trace is %s", response, spans[1].Trace)
	}
}
