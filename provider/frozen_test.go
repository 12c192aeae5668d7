package provider_test

import (
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// TestFrozen: each resource of the tenant's configuration reports at once that a run freezes changes, at
// creation, change and deletion, and waits for nothing. After the run the same is applied.
func TestFrozen(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ before, after string }{
		"osupgrade_config":             {`worker_applications = ["a"]`, `worker_applications = ["b"]`},
		"osupgrade_maintenance_window": {"days_of_week = [\"Friday\"]\n start_time = \"01:00\"\n duration = \"1h\"", "days_of_week = [\"Friday\"]\n start_time = \"02:00\"\n duration = \"1h\""},
		"osupgrade_calendar":           {"name = \"x\"\n kind = \"allow\"", "name = \"x\"\n kind = \"allow\"\n description = \"x\""},
		"osupgrade_rollout":            {`max_failures = "2"`, `max_failures = "3"`},
		"osupgrade_environment":        {"name = \"x\"\n match = { roles = [\"a\"] }", "name = \"x\"\n match = { roles = [\"b\"] }"},
		"osupgrade_disruption_budget":  {"name = \"x\"\n max_unavailable = \"1\"", "name = \"x\"\n max_unavailable = \"2\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			config := func(body string) string {
				return server.Config("resource \"" + name + "\" \"x\" {\n " + body + "\n}\n")
			}
			freeze := func(run uint64) func() { return func() { api.FreezeChanges(acctest.Tenant, run) } }
			frozen := spoken("run 41 freezes changes of the configuration until it ends Nothing was written. Apply again when the run has ended")
			acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
				{PreConfig: freeze(41), Config: config(row.before), PlanOnly: true, ExpectNonEmptyPlan: true},
				{Config: config(row.before), ExpectError: frozen},
				{PreConfig: freeze(0), Config: config(row.before)},
				{PreConfig: freeze(41), Config: config(row.after), ExpectError: frozen},
				{Config: config(row.before), Destroy: true, ExpectError: frozen},
				{PreConfig: freeze(0), Config: config(row.after)},
			}})
			if n := api.Count(http.MethodGet, "/runs/41"); n > 0 {
				t.Errorf("the run was read %d times", n)
			}
		})
	}
}
