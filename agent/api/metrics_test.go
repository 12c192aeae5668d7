package api_test

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
)

// TestMetrics checks who may read the metrics, and what they say after a run.
func TestMetrics(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 3)
	add := func(tenant string, allow ...string) string {
		text, err := c.dev.Tokens.Add(principal.Token{Name: "test", Tenant: tenant, Allow: allow})
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + text
	}
	c.want(c.call("GET", "/metrics", "", "Authorization", ""), 401, "has no token")
	c.want(c.call("GET", "/metrics", "", "Authorization", add("demo", access.Writes)), 403, "does not have the right")
	if a := c.want(c.call("GET", "/metrics", "", "Authorization", add("other", access.Reads)), 200, "osupgrade_site_healthy 1"); strings.Contains(a.body, "demo") {
		t.Errorf("the token of another tenant reads of tenant demo:\n%s", a.body)
	}
	c.want(c.call("GET", "/metrics", "", "Authorization", add(access.AnyTenant, access.Reads)), 200, `osupgrade_controller_up{tenant="demo"} 1`)
	c.want(c.call("PUT", configPath, body), 201, "")
	c.want(c.call("GET", "/nowhere", ""), 404, "")
	c.want(c.call("POST", configPath, ""), 405, "")
	c.finish(c.start(`{"override-window":true,"reason":"test"}`))
	got := c.call("GET", "/metrics", "")
	for _, want := range []string{
		`osupgrade_runs_total{result="completed",tenant="demo"} 1`,
		`osupgrade_run_hosts_ended_total{status="upgraded",tenant="demo"} 3`,
		`osupgrade_command_duration_seconds_count{command="prepare",tenant="demo"} 3`,
		`osupgrade_command_duration_seconds_count{command="upgrade",tenant="demo"} 3`,
		`osupgrade_run_duration_seconds_count{tenant="demo"} 1`,
		`osupgrade_hosts{state="in-service",tenant="demo"} 3`,
		`osupgrade_run_active{tenant="demo"} 0`,
		`osupgrade_log_append_duration_seconds_bucket{result="ok",tenant="demo",le="+Inf"}`,
		`osupgrade_api_requests_total{method="PUT",route="/v1/config/tenants/{tenant}/os-upgrade",status="201"} 1`,
		`osupgrade_api_requests_total{method="GET",route="none",status="404"} 1`,
		`osupgrade_api_requests_total{method="POST",route="/v1/config/tenants/{tenant}/os-upgrade",status="405"} 1`,
		`go_goroutines `, `process_resident_memory_bytes `,
	} {
		c.want(got, 200, want)
	}
}
