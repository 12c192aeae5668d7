package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

const rolledOut = `
resource "osupgrade_rollout" "acme" {
  stages = [
    { name = "canary", match = { hosts = ["h02"] }, soak = "0s" },
    { name = "rest", max_unavailable = "100%" },
  ]
  max_failures  = "50%"
  on_failure    = "pause"
  exempt        = { hosts = ["h03"] }
  command_timeouts = { reboot = "600s" }
}
resource "osupgrade_run" "acme" {
  override_window = true
  reason          = "a test"
  depends_on      = [osupgrade_config.acme, osupgrade_rollout.acme]
}
data "osupgrade_runs" "acme" {
  host       = "h02"
  depends_on = [osupgrade_run.acme]
}
`

// TestAgentRollout checks that the real agent stores a rollout, applies it to a run,
// and returns it without a difference.
func TestAgentRollout(t *testing.T) {
	t.Parallel()
	server, _ := realagent.Start(t, 3)
	config := server.Config(windows, rolledOut)
	host := func(name, status, stage string) knownvalue.Check {
		return knownvalue.ObjectPartial(map[string]knownvalue.Check{
			"hostname": knownvalue.StringExact(name), "status": knownvalue.StringExact(status), "stage": knownvalue.StringExact(stage),
		})
	}
	first := tfjsonpath.New("runs").AtSliceIndex(0)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: config,
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue("osupgrade_run.acme", tfjsonpath.New("result"), knownvalue.StringExact("completed")),
				statecheck.ExpectKnownValue("data.osupgrade_runs.acme", first.AtMapKey("hosts"), knownvalue.SetPartial([]knownvalue.Check{
					host("h02", "upgraded", "canary"), host("h01", "upgraded", "rest"),
				})),
			},
		},
		{Config: config, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
		{Config: config, ResourceName: "osupgrade_rollout.acme", ImportState: true, ImportStateId: acctest.Tenant, ImportStateVerifyIdentifierAttribute: "tenant"},
	}})
}

// TestAgentRollout_ofDefaults: a rollout that declares nothing, or only what is the default,
// exists at the real agent: the state, the server and an import agree, and the agent has none
// after a destroy.
func TestAgentRollout_ofDefaults(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"nothing":      ``,
		"stages":       `stages = []`,
		"defaults":     `max_failures = "1"`,
		"no hosts out": `paused = false`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, _ := realagent.Start(t, 1)
			w := acctest.NewWorkspace(t, server.Env()...)
			w.Write(t, "main.tf", acctest.Requirement+"resource \"osupgrade_config\" \"a\" {\n worker_applications = []\n}\nresource \"osupgrade_rollout\" \"a\" {\n"+body+"\n}\n")
			unchanged := []string{"plan", "-detailed-exitcode", "-input=false", "-no-color"}
			w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
			w.Run(t, 0, unchanged...)
			w.Run(t, 0, "state", "rm", "osupgrade_rollout.a")
			w.Run(t, 0, "import", "-input=false", "-no-color", "osupgrade_rollout.a", acctest.Tenant)
			w.Run(t, 0, unchanged...)
			w.Run(t, 0, "apply", "-replace=osupgrade_rollout.a", "-auto-approve", "-input=false", "-no-color")
			w.Run(t, 0, unchanged...)
			w.Run(t, 0, "destroy", "-auto-approve", "-input=false", "-no-color")
			w.Run(t, 1, "import", "-input=false", "-no-color", "osupgrade_rollout.a", acctest.Tenant)
		})
	}
}
