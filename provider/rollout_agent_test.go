package provider_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

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

// TestRollout_freezesChanges: while a run with freeze_changes is in its stages, an apply that changes the
// configuration fails with the run and the way out, a plan is validated as ever, and one that only
// pauses runs is applied. After the run all is written.
func TestRollout_freezesChanges(t *testing.T) {
	t.Parallel()
	server, _ := realagent.Start(t, 2)
	api := rest(t, server)
	w := acctest.NewWorkspace(t, server.Env()...)
	declare := func(start, paused string) {
		w.Write(t, "main.tf", acctest.Requirement+`
resource "osupgrade_rollout" "acme" {
  freeze_changes = true
  paused         = `+paused+`
  stages         = [{ name = "first", match = { hosts = ["h01"] } }, { name = "rest", approval = true }]
}
resource "osupgrade_config" "acme" {
  worker_applications = ["os-upgrade-simulated"]
  maintenance_windows = [{ days_of_week = ["Friday"], start_time = "`+start+`", duration = "1m" }]
  depends_on          = [osupgrade_rollout.acme]
}
resource "osupgrade_run" "acme" {
  override_window = true
  reason          = "a test"
  wait            = false
  depends_on      = [osupgrade_config.acme]
}
`)
	}
	apply := func(code int) string {
		return strings.Join(strings.Fields(strings.ReplaceAll(w.Run(t, code, "apply", "-auto-approve", "-no-color"), "│", "")), " ")
	}
	declare("01:00", "false")
	apply(0)
	if err := waitsForApproval(t, api); err != nil {
		t.Fatal(err)
	}
	declare("02:00", "false")
	w.Run(t, 2, "plan", "-detailed-exitcode", "-no-color")
	const told = "freezes changes of the configuration until it ends, because its rollout has freeze_changes; wait for its end, or end it: " +
		"osupgrade-agent abort --reason …; a freeze can be added, and runs can be paused Nothing was written."
	if out := apply(1); !strings.Contains(out, told) {
		t.Errorf("it does not say %q: %s", told, out)
	}
	declare("01:00", "true")
	apply(0)
	if _, err := api.Abort(t.Context(), acctest.Tenant, v1.Ask{Reason: "a test", Now: true}); err != nil {
		t.Fatal(err)
	}
	declare("02:00", "false")
	apply(0)
}

// waitsForApproval waits until the run under way waits for the approval of a stage.
func waitsForApproval(t *testing.T, api *client.Client) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waits := false
	err := api.Follow(ctx, acctest.Tenant, "", func(n client.News) bool {
		waits = n.Run != nil && n.Run.WaitingFor != nil && n.Run.WaitingFor.What == "approval"
		return !waits
	})
	if !waits && err == nil {
		err = errors.New("the run does not wait for an approval")
	}
	return err
}
