package metrics

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/tell/otlp"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

var update = flag.Bool("update", false, "write the table of metrics in the guide")

// guide is the page of which the table of metrics is a part.
const guide = "../../../docs/guides/monitoring.md"

// full are metrics of a site with one tenant, with a value for each.
func full(t *testing.T) *Site {
	t.Helper()
	s := New(Options{
		Version: "1.2.3", Healthy: func() error { return nil },
		Sealed: func() error { return errors.New("it is opened by a passphrase") },
		Audit:  func() audit.Figures { return audit.Figures{Written: 7, Failed: 2, Failing: true} },
		Traces: func() otlp.Figures { return otlp.Figures{Exported: 5, Rejected: 1, Dropped: 2, Queued: 3} },
		Certificates: func(now time.Time) []v1.Certificate {
			return []v1.Certificate{{Listener: "api", NotAfter: now.Add(time.Hour)}}
		},
	})
	s.Requested(http.MethodGet, "/healthz", http.StatusOK, time.Millisecond)
	tenant := s.Tenant("acme")
	now := time.Now()
	stages := []run.Stage{{ResolvedStage: rollout.ResolvedStage{Stage: rollout.Stage{Name: "canary"}, MaxUnavailable: 3}, OutOfService: 2}, {ResolvedStage: rollout.ResolvedStage{Stage: rollout.Stage{Name: "swact", Step: &rollout.Step{}}}, Phase: "failed"}}
	tenant.Serve(func(context.Context) (controller.Figures, error) {
		return controller.Figures{
			Serving: true, WindowStart: now.Add(-time.Hour), WindowEnd: now.Add(time.Hour), Hosts: map[roster.Service]int{roster.Unhealthy: 2},
			Calendars:    []controller.CalendarFigures{{Name: "holidays", Age: time.Hour, Failing: true}, {Name: "never", Age: -1}},
			Budgets:      []roster.Cell{{Cell: message.Cell{Budget: "racks", Label: "rack", Value: "r1", MaxUnavailable: 2}, Out: 1, Reserved: 1}},
			Queries:      map[string]bool{"databases": true},
			Releases:     []controller.ReleaseFigures{{Release: "spring", Hosts: 1}, {Environment: "basel", Release: "spring", Hosts: 2}},
			VersionAges:  []time.Duration{time.Hour, 20 * 24 * time.Hour, 1000 * 24 * time.Hour},
			Environments: []controller.EnvironmentFigures{{Hosts: 1}, {Name: "basel", Hosts: 2, WindowStart: now, WindowEnd: now.Add(time.Hour), Run: &controller.RunFigures{Phase: run.Upgrading, WaitingFor: run.ForHost, Stages: stages}}},
			Run: &controller.RunFigures{
				Phase: run.Upgrading, WaitingFor: run.ForSlot, WaitingSince: now.Add(-time.Minute),
				Stages: stages,
			},
		}, nil
	})
	tenant.Webhooks(func(context.Context) ([]v1.WebhookState, error) {
		return []v1.WebhookState{{Name: "chat", Queued: 3, DeadCount: 2}}, nil
	})
	return s
}

func everything(string) bool { return true }

// scrape returns what a scrape of the metrics of some tenants says.
func scrape(t *testing.T, s *Site, allowed func(string) bool) string {
	t.Helper()
	answer := httptest.NewRecorder()
	s.Handler(allowed).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("a scrape is answered with %d: %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// families returns the metrics of a site by name, without those of the process.
func families(t *testing.T, s *Site) map[string]*dto.MetricFamily {
	t.Helper()
	gatherers := prometheus.Gatherers{s.site}
	for _, registry := range s.tenants {
		gatherers = append(gatherers, registry)
	}
	gathered, err := gatherers.Gather()
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]*dto.MetricFamily{}
	for _, family := range gathered {
		if strings.HasPrefix(family.GetName(), "osupgrade_") {
			named[family.GetName()] = family
		}
	}
	return named
}

// TestGuide checks that the guide lists each metric with its type, labels and meaning.
func TestGuide(t *testing.T) {
	t.Parallel()
	named := families(t, full(t))
	table := "| metric | type | labels | meaning |\n|---|---|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(named)) {
		var labels []string
		for _, metric := range named[name].GetMetric() {
			for _, label := range metric.GetLabel() {
				if quoted := "`" + label.GetName() + "`"; !slices.Contains(labels, quoted) {
					labels = append(labels, quoted)
				}
			}
		}
		table += fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, strings.ToLower(named[name].GetType().String()), strings.Join(labels, ", "), named[name].GetHelp())
	}
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- metrics: go test ./agent/tell/metrics -run TestGuide -update -->\n", "<!-- end of metrics -->"
	head, rest, found := strings.Cut(string(page), begin)
	_, tail, ends := strings.Cut(rest, end)
	if !found || !ends {
		t.Fatalf("%s has no place for the table", guide)
	}
	want := head + begin + table + end + tail
	if want != string(page) && *update {
		if err := os.WriteFile(guide, []byte(want), 0o644); err != nil { //nolint:gosec // a page of the repository
			t.Fatal(err)
		}
	} else if want != string(page) {
		t.Errorf("the guide does not list the metrics as they are; run go test ./agent/tell/metrics -run TestGuide -update\n%s", table)
	}
}

// TestBounded checks that nothing that a client or a host says becomes a label of its own.
func TestBounded(t *testing.T) {
	t.Parallel()
	s := full(t)
	tenant := s.Tenant("other")
	tenant.Serve(func(context.Context) (controller.Figures, error) { return controller.Figures{}, nil })
	before := len(strings.Split(scrape(t, s, everything), "\n"))
	for i := range 1000 {
		s.Requested(fmt.Sprintf("METHOD%d", i), "", http.StatusNotFound, time.Second)
		tenant.HostEnded("", run.Host{Status: run.HostFailed, Class: message.Class(fmt.Sprintf("class%d", i))})
	}
	after := scrape(t, s, everything)
	if more := len(strings.Split(after, "\n")) - before; more > 20 {
		t.Errorf("requests and failures of a thousand kinds make %d lines more:\n%s", more, after)
	}
	for _, want := range []string{
		`osupgrade_api_requests_total{method="other",route="none",status="404"} 1000`,
		`osupgrade_host_failures_total{class="unknown",tenant="other"} 1000`,
		`osupgrade_host_failures_total{class="boot",tenant="other"} 0`,
	} {
		if !strings.Contains(after, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// TestValues checks the values that are computed here.
func TestValues(t *testing.T) {
	t.Parallel()
	got := scrape(t, full(t), everything)
	for _, want := range []string{
		`osupgrade_host_versions_age_seconds_bucket{tenant="acme",le="86400"} 1`,
		`osupgrade_host_versions_age_seconds_bucket{tenant="acme",le="2.592e+06"} 2`,
		`osupgrade_host_versions_age_seconds_bucket{tenant="acme",le="+Inf"} 3`,
		`osupgrade_hosts{state="unhealthy",tenant="acme"} 2`, `osupgrade_hosts{state="absent",tenant="acme"} 0`,
		`osupgrade_window_open{tenant="acme"} 1`,
		`osupgrade_run_slots{stage="canary",tenant="acme"} 3`, `osupgrade_run_slots_held{stage="canary",tenant="acme"} 2`,
		`osupgrade_run_slots{environment="basel",stage="canary",tenant="acme"} 3`, `osupgrade_run_step{environment="basel",phase="failed",stage="swact",tenant="acme"} 1`,
		`osupgrade_budget_query_refusing{budget="databases",tenant="acme"} 1`,
		`osupgrade_run_phase{phase="upgrading",tenant="acme"} 1`, `osupgrade_run_phase{phase="open",tenant="acme"} 0`,
		`osupgrade_build_info{version="1.2.3"} 1`, `osupgrade_site_healthy 1`,
		`osupgrade_audit_records_total 7`, `osupgrade_audit_failures_total 2`, `osupgrade_audit_failing 1`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// TestTenantsApart checks that who may read one tenant sees nothing of another, not even
// that there is one, and that a controller that does not answer holds up no other metric.
func TestTenantsApart(t *testing.T) {
	t.Parallel()
	s := full(t)
	s.Tenant("secret").Serve(func(context.Context) (controller.Figures, error) { return controller.Figures{}, errors.New("it hangs") })
	if got := scrape(t, s, func(tenant string) bool { return tenant == "acme" }); strings.Contains(got, "secret") || !strings.Contains(got, `tenant="acme"`) {
		t.Errorf("who may read acme sees\n%s", got)
	}
	got := scrape(t, s, everything)
	for _, want := range []string{`osupgrade_controller_up{tenant="secret"} 0`, `osupgrade_controller_up{tenant="acme"} 1`, `osupgrade_runs_total{result="failed",tenant="secret"} 0`} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	s.Forget("secret")
	if got := scrape(t, s, everything); strings.Contains(got, "secret") {
		t.Error("a tenant that is gone is still there")
	}
}
