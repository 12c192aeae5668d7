package provider_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

const windows = `
resource "osupgrade_config" "acme" {
  worker_applications = ["os-upgrade-simulated"]
  maintenance_windows = [
    { days_of_week = ["Saturday", "Friday"], start_time = "01:00", duration = "240m" },
  ]
}
`

// TestAgentConfig creates a configuration on the real agent, reads it back without a
// difference, writes it in another form, changes it, has somebody else change it,
// imports and destroys it.
func TestAgentConfig(t *testing.T) {
	t.Parallel()
	server, _ := realagent.Start(t, 0)
	otherForm := server.Config(`
resource "osupgrade_config" "acme" {
  worker_applications = ["os-upgrade-simulated"]
  maintenance_windows = [
    { days_of_week = ["Friday", "Saturday"], start_time = "01:00", timezone = "site-local", duration = "4h" },
  ]
}
`)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(windows), ConfigPlanChecks: resource.ConfigPlanChecks{
			PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
		}},
		{Config: otherForm, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
		{PreConfig: func() { meddle(t, server) }, Config: server.Config(windows), ConfigPlanChecks: resource.ConfigPlanChecks{
			PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction("osupgrade_config.acme", plancheck.ResourceActionUpdate)},
		}},
		{
			Config: server.Config(windows), ResourceName: "osupgrade_config.acme", ImportState: true, ImportStateId: acctest.Tenant,
			ImportStateVerifyIdentifierAttribute: "tenant",
		},
		{Config: server.Config(), ConfigPlanChecks: resource.ConfigPlanChecks{
			PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction("osupgrade_config.acme", plancheck.ResourceActionDestroy)},
		}},
	}})
	if _, _, err := rest(t, server).Config(t.Context(), acctest.Tenant); !client.HasStatus(err, 404) {
		t.Errorf("after destroy the configuration reads as %v", err)
	}
}

func rest(t *testing.T, server acctest.Server) *client.Client {
	t.Helper()
	api, err := client.New(client.Options{Endpoint: server.Endpoint, Token: server.Token})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// meddle changes the configuration as somebody else would.
func meddle(t *testing.T, server acctest.Server) {
	t.Helper()
	config := v1.OSUpgrade{
		WorkerApplications: []v1.WorkerApplication{{Name: "os-upgrade-simulated"}},
		MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Monday", StartTime: "03:00", Duration: "1h"}},
	}
	if _, err := rest(t, server).PutConfig(context.WithoutCancel(t.Context()), acctest.Tenant, config, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
}

const run = `
resource "osupgrade_run" "acme" {
  triggers        = { release = "1" }
  override_window = true
  reason          = "a test"
  depends_on      = [osupgrade_config.acme]
}
data "osupgrade_hosts" "acme" {
  depends_on = [osupgrade_run.acme]
}
data "osupgrade_state" "acme" {
  depends_on = [osupgrade_run.acme]
}
`

// TestAgentRun applies configuration and run and reads the result, in one apply on the
// real agent: first with a host that fails, so that the apply fails with the host's
// error and the next apply starts another run.
func TestAgentRun(t *testing.T) {
	t.Parallel()
	server, dir := realagent.Start(t, 2)
	faults := filepath.Join(dir, "hosts", "h02", "faults.json")
	if err := os.WriteFile(faults, []byte(`{"upgrade":"fail: no space left on /boot"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(windows, run), ExpectError: regexp.MustCompile(`(?s)h02.*no\s+space\s+left\s+on\s+/boot`)},
		{
			PreConfig: func() {
				if err := os.Remove(faults); err != nil {
					t.Fatal(err)
				}
			},
			Config: server.Config(windows, run),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction("osupgrade_run.acme", plancheck.ResourceActionReplace)},
			},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue("osupgrade_run.acme", tfjsonpath.New("result"), knownvalue.StringExact("completed")),
				statecheck.ExpectKnownValue("data.osupgrade_state.acme", tfjsonpath.New("status"), knownvalue.StringExact("idle")),
				statecheck.ExpectKnownValue("data.osupgrade_hosts.acme", tfjsonpath.New("hosts").AtSliceIndex(1).AtMapKey("versions").AtMapKey("base-os"), knownvalue.StringExact("1.1")),
			},
		},
		{Config: server.Config(windows, run), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
	}})
}
