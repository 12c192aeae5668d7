package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestBudgetQuery holds a run of real processes by the query of a disruption budget at a Prometheus
// server: status, metrics and news say so, a host that reboots by itself waits, too, and so it is after
// the site was killed. The run goes on once the query allows it, and was told of once.
func TestBudgetQuery(t *testing.T) {
	t.Parallel()
	var lag atomic.Int32
	lag.Store(9)
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"%d"]}]}}`, lag.Load())
	}))
	t.Cleanup(prometheus.Close)
	f := newFleet(t, "OSUPGRADE_ALLOW_LOCAL="+prometheus.Listener.Addr().String())
	zincati := f.command("credentials", "token", "--data", f.dir+"/site", "--tenant", "acme", "--name", "zincati", "--allow", "fleetlock")
	api := f.client()
	if _, err := api.PutRollout(t.Context(), "acme", v1.Rollout{FleetLock: true}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	budget := v1.Budget{MaxUnavailable: "2", Prometheus: &rollout.Query{URL: prometheus.URL, Query: "max(lag)", Below: "5"}}
	if _, err := client.BudgetNamed("databases").Put(t.Context(), api, "acme", client.Stored[v1.Budget]{}, budget, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.PutConfig(t.Context(), "acme", v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "appliance"}}}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	f.gather(api, 3)
	started, err := api.Start(t.Context(), "acme", v1.Start{OverrideWindow: true, Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	refused := "9, which is not below 5 (query max(lag) at " + prometheus.URL + ")"
	held := func() {
		t.Helper()
		f.answers("/v1/state/tenants/acme/os-upgrade", `"budget-refusals":[{"budget":"databases",`)
		f.answers("/v1/state/tenants/acme/os-upgrade", `"status":"waiting"`)
		f.answers(fmt.Sprintf("/v1/state/tenants/acme/os-upgrade/runs/%d", started.ID), "budget databases to allow it: "+refused)
		f.answers("/metrics", `osupgrade_budget_query_refusing{budget="databases",tenant="acme"} 1`)
		if status, answer := f.locks(zincati, "h02"); status != http.StatusConflict || !strings.Contains(answer, refused) {
			t.Errorf("a lock is answered with %d: %s", status, answer)
		}
		for want, args := range map[string][]string{
			"databases: its query has kept hosts in service since ": {"status"}, "refuses: " + refused: {"get", "budgets"},
		} {
			if shown := f.command(append(args, "--endpoint", "http://"+f.api, "--tenant", "acme", "--token-file", f.tokenFile())...); !strings.Contains(shown, want) {
				t.Errorf("%q prints\n%s", args, shown)
			}
		}
	}
	held()
	f.answers("/v1/state/tenants/acme/os-upgrade/news", `"text":"Run `+fmt.Sprint(started.ID)+` of tenant acme is blocked: it waits for budget databases to allow it: `+refused)
	f.site.kill()
	f.startSite()
	f.ready(http.StatusOK, "ok")
	f.gather(api, 3)
	held()
	if f.count("h01 upgrade begins") != 0 {
		t.Error("a host leaves service")
	}
	lag.Store(1)
	if err := os.WriteFile(f.path("h03", "off"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"h01", "h02", "h03"} {
		f.await(host + " upgrade begins")
		f.release(host)
	}
	f.await("h03 reboots")
	f.workers["h03"].kill()
	f.workers["h03"] = f.startWorker("h03")
	if ended := f.finished(api, started.ID); ended.Result != "completed" {
		t.Errorf("the run ended as %s: %s", ended.Result, ended.Reason)
	}
	if status, answer := f.locks(zincati, "h02"); status != http.StatusOK {
		t.Errorf("a lock is answered with %d: %s", status, answer)
	}
	told := f.answers("/v1/state/tenants/acme/os-upgrade/news", `"type":"run.finished"`)
	if n := strings.Count(told, `"type":"run.blocked"`); n != 1 || !strings.Contains(told, `"command":"osupgrade-agent edit budgets"`) {
		t.Errorf("it is told %d times:\n%s", n, told)
	}
}

// locks has a host ask for the lock of the FleetLock protocol.
func (f *fleet) locks(token, host string) (status int, answer string) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, "http://"+f.api+"/v1/state/os-upgrade/fleetlock/v1/pre-reboot",
		strings.NewReader(`{"client_params": {"id": "`+host+`", "group": "default"}}`))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("fleet-lock-protocol", "true")
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := (&http.Client{Timeout: patience}).Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// tokenFile writes the token to a file, which commands read.
func (f *fleet) tokenFile() string {
	f.t.Helper()
	if err := os.WriteFile(f.path("token"), []byte(f.token), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return f.path("token")
}
