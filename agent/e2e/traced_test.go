package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/otlptest"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestTraceAcrossCrash runs serve and three workers with a collector of OpenTelemetry, has a
// REST call with a traceparent start a run, kills the site with SIGKILL in the middle,
// while the collector is away, too, and sees one trace in the end: from the call to the
// work of each host and back.
func TestTraceAcrossCrash(t *testing.T) {
	t.Parallel()
	collector := otlptest.New(t)
	f := newFleet(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=sesame", "OTEL_SERVICE_NAME=upgrades",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test")
	api := f.client()
	if _, err := api.PutConfig(t.Context(), "acme", v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "appliance"}}}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	f.gather(api, 3)
	const caller, called = "b7ad6b7169203331", "0af7651916cd43dd8448eb211c80319c"
	run := f.startTraced("00-" + called + "-" + caller + "-01")
	f.await("h01 upgrade begins")
	f.sees(collector, "the call", func(all map[string]otlptest.Span) bool {
		return named(all, "POST /v1/state/tenants/{tenant}/os-upgrade/start", "") == 1
	})
	collector.Instead(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	f.site.kill()
	f.release("h01")
	f.await("h01 upgrade ends")
	f.startSite()
	f.await("h02 upgrade begins")
	f.release("h02")
	f.release("h03")
	f.await("h03 reboot begins")
	f.stop("h03")
	if err := os.WriteFile(f.path("h03", "off"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.await("h03 reboots")
	f.workers["h03"] = f.startWorker("h03")
	if ended := f.finished(api, run); ended.Result != "completed" {
		t.Fatalf("the run ended as %s: %s", ended.Result, ended.Reason)
	}
	collector.Instead(nil)
	all := f.sees(collector, "the end of the run", func(all map[string]otlptest.Span) bool { return named(all, "run", "") == 1 })
	for name, span := range all {
		if span.Trace != called {
			delete(all, name)
		}
	}
	for what, n := range map[string]int{"POST /v1/state/tenants/{tenant}/os-upgrade/start": 1, "run": 1, "prepare hosts": 1, "prepare": 3, "stage": 1, "host": 3, "upgrade": 3, "reboot": 1} {
		if got := named(all, what, ""); got != n {
			t.Errorf("the trace has %d spans %q, want %d", got, what, n)
		}
	}
	if named(all, "reboot", "h03") != 1 || named(all, "upgrade", "h01") != 1 {
		t.Errorf("the spans of hosts are %+v", all)
	}
	for _, s := range all {
		parent, found := all[s.Parent]
		switch {
		case strings.HasPrefix(s.Name, "POST "):
			if s.Parent != caller {
				t.Errorf("the parent of the call is %s, not the caller's %s", s.Parent, caller)
			}
			continue
		case !found:
			t.Errorf("the parent of %s is not there", s.Name)
		case s.Name == "run":
			if !strings.HasPrefix(parent.Name, "POST ") {
				t.Errorf("the parent of the run is %s", parent.Name)
			}
		case s.Start.Before(parent.Start) || s.End.After(parent.End):
			t.Errorf("%s is not in %s", s.Name, parent.Name)
		}
		if s.Failed || s.Attributes["osupgrade.tenant"] != "acme" || s.Name != "run" && s.Attributes["osupgrade.run"] != fmt.Sprint(run) {
			t.Errorf("%s is %+v", s.Name, s)
		}
	}
	if r := collector.Resource(); r["service.name"] != "upgrades" || r["deployment.environment.name"] != "test" || r["osupgrade.site"] != "local" {
		t.Errorf("the sender is %v", r)
	}
	if collector.Headers().Get("Api-Key") != "sesame" {
		t.Errorf("the collector is sent the headers %v", collector.Headers())
	}
	// The collector has the spans before the site has its answer.
	f.awaitLog("serve", "the collector takes traces again")
	if log := read(t, f.path("serve.log")); strings.Contains(log, "sesame") {
		t.Errorf("the log of the site has the secret:\n%s", log)
	}
}

// startTraced starts a run by a call with a traceparent, and returns its id.
func (f *fleet) startTraced(traceparent string) uint64 {
	f.t.Helper()
	request, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, "http://"+f.api+"/v1/state/tenants/acme/os-upgrade/start", bytes.NewReader([]byte(`{"override-window":true,"reason":"a test"}`)))
	if err != nil {
		f.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+f.token)
	request.Header.Set("Traceparent", traceparent)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		f.t.Fatal(err)
	}
	defer answer.Body.Close()
	var run v1.Run
	if err := json.NewDecoder(answer.Body).Decode(&run); err != nil || answer.StatusCode != http.StatusOK {
		f.t.Fatalf("start is answered %s, %v", answer.Status, err)
	}
	return run.ID
}

// sees waits until the collector has what it is to have, and returns all spans by their id.
// One that came twice came the same.
func (f *fleet) sees(c *otlptest.Collector, what string, enough func(map[string]otlptest.Span) bool) map[string]otlptest.Span {
	f.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		all := map[string]otlptest.Span{}
		for _, s := range c.Spans() {
			if before, twice := all[s.ID]; twice && !reflect.DeepEqual(before, s) {
				f.t.Fatalf("span %s came as %+v and as %+v", s.ID, before, s)
			}
			all[s.ID] = s
		}
		if enough(all) {
			return all
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the collector does not see %s; it has %+v", what, all)
		}
	}
}

// named counts the spans whose name begins so; of a host if one is named.
func named(all map[string]otlptest.Span, name, host string) (n int) {
	for _, s := range all {
		matches := s.Name == name || strings.HasSuffix(name, " ") && strings.HasPrefix(s.Name, name)
		if matches && (host == "" || s.Attributes["osupgrade.host"] == host) {
			n++
		}
	}
	return n
}
