package rollout_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
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
		"empty":    "stages = []\n paused = false\n checks = { fleet = [] }\n hooks = {}\n step_timeouts = {}",
		"defaults": "max_failures = 1\n on_failure = \"stop\"\n min_prepared = \"100%\"\n splay = \"0m\"\n step_timeouts = { reboot = \"900s\" }",
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

func TestAccRollout_stateHoldsOnlyWhatIsDeclared(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.RenderRollout(v1.Rollout.WithDefaults)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(`reserve = "60m"`))},
		{RefreshState: true},
		{
			Config: server.Config(block(`reserve = "60m"`)),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(address, tfjsonpath.New("reserve"), knownvalue.StringExact("60m")),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("splay"), knownvalue.Null()),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("stages"), knownvalue.Null()),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("checks"), knownvalue.Null()),
			},
		},
	}})
}

func TestAccRollout_whatIsNoLongerDeclaredIsNoLongerSent(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block("max_failures = 1\n splay = \"1m\"")), Check: stored(api, v1.Rollout{MaxFailures: "1", Splay: "1m"})},
		{Config: server.Config(block("splay = \"1m\"")), Check: stored(api, v1.Rollout{Splay: "1m"})},
		{Config: server.Config(block("splay = \"60s\"")), ConfigPlanChecks: emptyPlan()},
		{Config: server.Config(block("")), Check: stored(api, v1.Rollout{})},
	}})
}
