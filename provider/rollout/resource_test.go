package rollout_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

const address = "osupgrade_rollout.test"

// block is the resource with this body.
func block(body string) string { return "resource \"osupgrade_rollout\" \"test\" {\n" + body + "\n}\n" }

// complete declares every attribute, and whole is its object in the API, without the
// default that complete writes out, the timeout of a check.
const complete = `
  stages = [
    {
      name             = "canary"
      match            = { hosts = ["h02", "h01"], labels = { ring = "0", "topology/zone" = "" }, roles = ["edge"], applications = ["os-upgrade-debian"] }
      max_unavailable  = 2
      soak             = "30m"
      approval_timeout = "12h"
    },
    { name = "rest", max_unavailable = "10%", approval = true },
    {
      name               = "swact"
      point_of_no_return = true
      step = {
        do    = { type = "exec", script = "swact", timeout = "30m" }
        undo  = { type = "http", url = "http://127.0.0.1/swact", on = "site" }
        match = { labels = { active = "true" } }
        gives = ["JOIN"]
      }
    },
  ]
  freeze_changes = true
  max_failures  = "5%"
  on_failure    = "pause"
  min_prepared  = "90%"
  overrun       = "stop"
  overrun_limit = "5m"
  reserve       = "10m"
  splay         = "90s"
  paused        = true
  exempt        = { labels = { pinned = "yes" } }
  exempt_reboot = { roles = ["db"] }
  checks = {
    start = [
      { type = "hosts", same_version = "linux" },
      { type = "disk", path = "/var", min_free = "2GiB", match = { hosts = ["h01"] } },
    ]
    before_host = [
      { type = "systemd", unit = "nginx.service" },
      { type = "tcp", address = "127.0.0.1:22", name = "ssh" },
    ]
    after_host = [{ type = "http", url = "http://127.0.0.1/healthz", status = 204, passes = 3, interval = "2s", timeout = "1m" }]
    fleet = [
      { type = "exec", script = "quorum", args = ["--least", "60m"] },
      { type = "disk", path = "/var", min_free = "2GiB" },
    ]
  }
  hooks = {
    drain   = { type = "exec", script = "drain", args = ["now"], on = "site", timeout = "5m", retries = 0, retry_interval = "1s" }
    undrain = { type = "http", url = "https://lb.example/hosts/{host}", method = "PUT" }
  }
  command_timeouts = { prepare = "2h", upgrade = "90m", reboot = "20m" }
`

func whole() v1.Rollout {
	none := 0
	return v1.Rollout{
		Stages: []v1.Stage{
			{
				Name: "canary", MaxUnavailable: "2", Soak: "30m", ApprovalTimeout: "12h",
				Match: &v1.Match{
					Hosts: []string{"h01", "h02"}, Labels: map[string]string{"ring": "0", "topology/zone": ""},
					Roles: []string{"edge"}, Applications: []string{"os-upgrade-debian"},
				},
			},
			{Name: "rest", MaxUnavailable: "10%", Approval: true},
			{Name: "swact", PointOfNoReturn: true, Step: &v1.Step{
				Do: &v1.Hook{Type: "exec", Script: "swact", Timeout: "30m"}, Undo: &v1.Hook{Type: "http", URL: "http://127.0.0.1/swact", On: "site"},
				Match: &v1.Match{Labels: map[string]string{"active": "true"}}, Gives: []string{"JOIN"},
			}},
		},
		FreezeChanges: true, MaxFailures: "5%", OnFailure: "pause", MinPrepared: "90%", Overrun: "stop", OverrunLimit: "5m", Reserve: "10m", Splay: "1m30s", Paused: true,
		Exempt: &v1.Match{Labels: map[string]string{"pinned": "yes"}}, ExemptReboot: &v1.Match{Roles: []string{"db"}},
		Checks: &v1.RolloutChecks{
			Start: []v1.StartCheck{
				{Check: v1.Check{Type: "hosts", SameVersion: "linux"}},
				{Check: v1.Check{Type: "disk", Path: "/var", MinFree: "2GiB"}, Match: &v1.Match{Hosts: []string{"h01"}}},
			},
			BeforeHost: []v1.Check{{Type: "systemd", Unit: "nginx.service"}, {Type: "tcp", Address: "127.0.0.1:22", Name: "ssh"}},
			AfterHost:  []v1.Check{{Type: "http", URL: "http://127.0.0.1/healthz", Status: 204, Passes: 3, Interval: "2s"}},
			Fleet:      []v1.Check{{Type: "exec", Script: "quorum", Args: []string{"--least", "60m"}}, {Type: "disk", Path: "/var", MinFree: "2GiB"}},
		},
		Hooks: &v1.RolloutHooks{
			Drain:   &v1.Hook{Type: "exec", Script: "drain", Args: []string{"now"}, On: "site", Timeout: "5m", Retries: &none, RetryInterval: "1s"},
			Undrain: &v1.Hook{Type: "http", URL: "https://lb.example/hosts/{host}", Method: "PUT"},
		},
		Timeouts: &v1.CommandTimeouts{Prepare: "2h", Upgrade: "1h30m", Reboot: "20m"},
	}
}

func emptyPlan() resource.ConfigPlanChecks { return expect(plancheck.ExpectEmptyPlan()) }

func action(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return expect(plancheck.ExpectResourceAction(address, a))
}

func expect(checks ...plancheck.PlanCheck) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: checks}
}

func TestAccRollout_lifecycle(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{
		CheckDestroy: absent(api),
		Steps: []resource.TestStep{
			{Config: server.Config(block("")), Check: stored(api, v1.Rollout{})},
			{Config: server.Config(block(complete)), ConfigPlanChecks: action(plancheck.ResourceActionUpdate), Check: stored(api, whole())},
			{Config: server.Config(block(complete)), ConfigPlanChecks: emptyPlan()},
			{ResourceName: address, ImportState: true, ImportStateId: acctest.Tenant, ImportStateKind: resource.ImportBlockWithID},
			{
				Config:           server.Config(block(`stages = [{ name = "rest" }]`)),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				Check:            stored(api, v1.Rollout{Stages: []v1.Stage{{Name: "rest"}}}),
			},
			{ResourceName: address, ImportState: true, ImportStateId: acctest.Tenant, ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "tenant"},
		},
	})
}
