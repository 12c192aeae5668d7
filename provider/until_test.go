package provider_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// nights are two stages, and a run of them with more attributes.
func nights(body string) string {
	return `resource "osupgrade_rollout" "acme" {
  stages = [{ name = "canary", match = { hosts = ["h01"] } }, { name = "rest" }]
}
resource "osupgrade_config" "acme" {
  worker_applications = ["os-upgrade-simulated"]
  depends_on          = [osupgrade_rollout.acme]
}
resource "osupgrade_run" "night" {
  override_window = true
  reason          = "release 2"
  depends_on      = [osupgrade_config.acme]
` + body + "\n}\n"
}

// TestRun_until: a run ends after a stage and is no difference then, is imported as it is, and another
// stage, or none, is another run, which goes on where the first one ended.
func TestRun_until(t *testing.T) {
	t.Parallel()
	server, _ := realagent.Start(t, 2)
	const address = "osupgrade_run.night"
	has := func(attributes map[string]string) resource.TestCheckFunc {
		var all []resource.TestCheckFunc
		for name, value := range attributes {
			all = append(all, resource.TestCheckResourceAttr(address, name, value))
		}
		return resource.ComposeAggregateTestCheckFunc(all...)
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(nights(` until = "canary"`)), Check: has(map[string]string{
			"result": "completed", "until": "canary", "hosts.#": "1", "hosts.0.hostname": "h01", "hosts.0.status": "upgraded",
		})},
		{Config: server.Config(nights(` until = "canary"`)), ConfigPlanChecks: plans(address, plancheck.ResourceActionNoop)},
		{
			ResourceName: address, ImportState: true, ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "run_id", ImportStateVerifyIgnore: []string{"override_window"},
			ImportStateIdFunc: func(s *terraform.State) (string, error) {
				return s.RootModule().Resources[address].Primary.Attributes["run_id"], nil
			},
		},
		{Config: server.Config(nights("")), ConfigPlanChecks: plans(address, plancheck.ResourceActionReplace), Check: has(map[string]string{
			"result": "completed", "hosts.#": "1", "hosts.0.hostname": "h02", "hosts.0.status": "upgraded",
		})},
		{Config: server.Config(nights(" until = \"canary\"\n host_names = [\"h01\"]")), PlanOnly: true, ExpectError: spoken("until ends a run of all hosts of its environment. Remove until")},
		{Config: server.Config(nights(` until = "No stage"`)), PlanOnly: true, ExpectError: spoken(`"No stage" is not a name`)},
		{Config: server.Config(nights(""))},
	}})
}

// TestRun_untilAStageThatThereIsNot: a plan warns of it, but not of one that it declares itself, and the
// apply fails.
func TestRun_untilAStageThatThereIsNot(t *testing.T) {
	t.Parallel()
	server, _ := realagent.Start(t, 1)
	w := acctest.NewWorkspace(t, server.Env()...)
	warned := func() []string {
		return acctest.Diagnostics(t, planned(w.Run(t, 0, "plan", "-json")))["osupgrade_run.night"]
	}
	w.Write(t, "main.tf", acctest.Requirement+nights(` until = "canary"`))
	if got := warned(); strings.Contains(strings.Join(got, "\n"), "stage") {
		t.Errorf("a plan that declares the stage warns: %q", got)
	}
	w.Run(t, 0, "apply", "-auto-approve", "-no-color", "-target=osupgrade_config.acme")
	w.Write(t, "main.tf", acctest.Requirement+nights(` until = "cnary"`))
	const want = "is no stage of the rollout; use one of canary, rest"
	if got := warned(); len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("got %q, want one warning with %q", got, want)
	}
	out := w.Run(t, 1, "apply", "-auto-approve", "-no-color")
	if !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(out, "│", " ")), " "), want) {
		t.Errorf("the apply says %s", out)
	}
}
