package rollout_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// otherForm is complete in another form with the same meaning: durations, numbers for
// texts, the order of sets.
var otherForm = strings.NewReplacer(
	`"30m"`, `"1800s"`, `"12h"`, `"720m"`, `"10m"`, `"600s"`, `"90s"`, `"1m30s"`, `"2s"`, `"0m2s"`, `timeout = "1m"`, `timeout = "60s"`,
	`"5m"`, `"300s"`, `retry_interval = "1s"`, `retry_interval = "0h1s"`, `"2h"`, `"120m"`, `"90m"`, `"1h30m"`, `"20m"`, `"1200s"`,
	`["h02", "h01"]`, `["h01", "h02"]`, `max_unavailable  = 2`, `max_unavailable = "2"`,
).Replace(complete)

func TestAccRollout_otherSpellingIsNoChange(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete)), Check: writes(api, 1)},
		{Config: server.Config(block(otherForm)), ConfigPlanChecks: emptyPlan(), Check: stored(api, whole())},
	}})
}

// TestAccRollout_noPerpetualDiff checks that declared values keep their form, although
// the server omits empty, false and zero values, fills in defaults, and returns
// durations in canonical form. TestFromAPI_keepsWhatIsDeclared checks all values
// without a CLI.
func TestAccRollout_noPerpetualDiff(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.RenderRollout(func(r v1.Rollout) v1.Rollout { return r.WithDefaults().Canonical() })
	var steps []resource.TestStep
	for name, body := range map[string]string{
		"complete": complete,
		"empty":    "stages = []\n paused = false\n checks = { fleet = [] }\n hooks = {}\n command_timeouts = {}",
		"defaults": "max_failures = 1\n on_failure = \"stop\"\n min_prepared = \"100%\"\n splay = \"0m\"\n command_timeouts = { reboot = \"900s\" }",
	} {
		steps = append(steps, resource.TestStep{
			PreConfig: func() {
				t.Log(name)
				api.ForgetRequests()
			},
			// Each step checks that the next plan is empty.
			Config: server.Config(block(body)),
			Check:  writes(api, 1),
		}, resource.TestStep{Config: server.Config()})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

func TestAccRollout_onlyTheRealChangeIsShown(t *testing.T) {
	t.Parallel()
	_, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{
			Config: server.Config(block(strings.Replace(otherForm, `"stop"`, `"finish-host"`, 1))),
			ConfigPlanChecks: expect(
				plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate),
				plancheck.ExpectKnownValue(address, tfjsonpath.New("overrun"), knownvalue.StringExact("finish-host")),
				plancheck.ExpectKnownValue(address, tfjsonpath.New("reserve"), knownvalue.StringExact("10m")),
				plancheck.ExpectKnownValue(address, tfjsonpath.New("stages").AtSliceIndex(0).AtMapKey("soak"), knownvalue.StringExact("30m")),
			),
		},
	}})
}

func TestAccRollout_stateHoldsTheDefaults(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(`reserve = "60m"`))},
		{RefreshState: true},
		{
			Config: server.Config(block(`reserve = "60m"`)),
			Check:  stored(api, v1.Rollout{Reserve: "1h"}),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(address, tfjsonpath.New("reserve"), knownvalue.StringExact("60m")),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("splay"), knownvalue.StringExact("0s")),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("paused"), knownvalue.Bool(false)),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("stages"), knownvalue.ListSizeExact(0)),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("command_timeouts").AtMapKey("reboot"), knownvalue.StringExact("15m")),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("exempt"), knownvalue.Null()),
			},
		},
	}})
}

const (
	withoutDefaults = `
  stages = [{ name = "canary", match = { roles = ["edge"] } }, { name = "rest" }]
  checks = { after_host = [{ type = "tcp", address = "127.0.0.1:22" }, { type = "exec", script = "x" }] }
  hooks  = { drain = { type = "exec", script = "drain" } }
`
	withDefaults = `
  stages = [
    { name = "canary", match = { roles = ["edge"] }, max_unavailable = 1, soak = "0m", approval = false, approval_timeout = "24h" },
    { name = "rest", max_unavailable = "1" },
  ]
  max_failures  = 1
  on_failure    = "stop"
  absent        = "skip"
  min_prepared  = "50%"
  overrun       = "finish-host"
  overrun_limit = "15m"
  reserve       = "0s"
  retry_after   = "900s"
  splay         = "0h"
  paused        = false
  checks = {
    before_host = []
    after_host  = [{ type = "tcp", address = "127.0.0.1:22", passes = 1, interval = "5s", timeout = "60s" }, { type = "exec", script = "x", args = [] }]
    fleet       = []
  }
  hooks         = { drain = { type = "exec", script = "drain", args = [], on = "host", timeout = "1m", retries = 2, retry_interval = "10s" } }
  command_timeouts = { prepare = "60m", reboot = "15m" }
`
)

// TestAccRollout_toWriteADefaultOutIsNoChange: neither a default that is written out nor one
// that is left out again is shown in a plan, whatever its form.
func TestAccRollout_toWriteADefaultOutIsNoChange(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(withoutDefaults)), Check: writes(api, 1)},
		{Config: server.Config(block(withDefaults)), ConfigPlanChecks: emptyPlan()},
		{Config: server.Config(block(withoutDefaults)), ConfigPlanChecks: emptyPlan(), Check: writes(api, 1)},
		{Config: server.Config(block("")), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
		{Config: server.Config(block("stages = []\n checks = {}\n hooks = {}\n command_timeouts = {}")), ConfigPlanChecks: emptyPlan()},
	}})
}

func TestAccRollout_whatIsNoLongerDeclaredIsNoLongerSent(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block("max_failures = 2\n splay = \"1m\"")), Check: stored(api, v1.Rollout{MaxFailures: "2", Splay: "1m"})},
		{Config: server.Config(block("splay = \"1m\"")), Check: stored(api, v1.Rollout{Splay: "1m"})},
		{Config: server.Config(block("splay = \"60s\"")), ConfigPlanChecks: emptyPlan()},
		{Config: server.Config(block("")), Check: stored(api, v1.Rollout{})},
	}})
}
