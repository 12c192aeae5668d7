package environment_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// TestAccEnvironmentDataSource: a declared environment has both its declaration and its status; default,
// and one that was deleted while its run was under way, have the status alone.
func TestAccEnvironmentDataSource(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	at := time.Date(2026, 11, 29, 1, 0, 0, 0, time.UTC)
	api.SetEnvironments(acctest.Tenant,
		v1.EnvironmentStatus{
			Name: "basel", Status: "idle", Hosts: 4, Outdated: 3, Missed: 1, Needs: []string{"failed"}, NextUpgradeAt: &at, Run: &v1.Run{ID: 5, Result: "failed", WayBack: &v1.WayBack{Until: "complete", Closed: &at}},
			SkippedWindow: &v1.SkippedWindow{Start: at, End: at.Add(time.Hour), By: "ann", Reason: "sale"},
		},
		v1.EnvironmentStatus{Name: "default", Status: "idle", Hosts: 2},
		v1.EnvironmentStatus{Name: "gone", Removed: true, Status: "upgrading", Run: &v1.Run{ID: 7}},
	)
	api.SetEnvironment(acctest.Tenant, "basel", v1.Environment{
		Description: "Shop in Basel", Match: v1.Match{Labels: map[string]string{"shop": "basel"}, Roles: []string{"till"}},
		MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Sunday, Monday", StartTime: "02:00", Duration: "120m"}}, Calendars: []string{"sales"},
		Rollout: &v1.Rollout{OnFailure: "pause", Stages: []v1.Stage{{Name: "all", MaxUnavailable: "2"}}, Checks: &v1.RolloutChecks{AfterHost: []v1.Check{{Type: "tcp", Address: "127.0.0.1:22"}}}},
		After:   &v1.After{Environments: []string{"canary"}, Soak: "1d"},
	})
	const address = "data.osupgrade_environment.one"
	config := func(name string) string {
		return server.Config("data \"osupgrade_environment\" \"one\" {\n name = \"" + name + "\"\n}\n")
	}
	has := func(attributes map[string]string) resource.TestCheckFunc {
		var all []resource.TestCheckFunc
		for name, value := range attributes {
			if value == "null" {
				all = append(all, resource.TestCheckNoResourceAttr(address, name))
			} else {
				all = append(all, resource.TestCheckResourceAttr(address, name, value))
			}
		}
		return resource.ComposeAggregateTestCheckFunc(all...)
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config("basel"), Check: has(map[string]string{
			"tenant": "acme", "declared": "true", "description": "Shop in Basel", "match.labels.shop": "basel", "match.roles.0": "till",
			"maintenance_windows.0.days_of_week.#": "2", "maintenance_windows.0.timezone": "site-local", "maintenance_windows.0.duration": "120m", "calendars.0": "sales",
			"rollout.on_failure": "pause", "rollout.max_failures": "1", "rollout.stages.0.max_unavailable": "2", "rollout.checks.after_host.0.address": "127.0.0.1:22",
			"after.environments.0": "canary", "after.soak": "1d",
			"hosts": "4", "outdated": "3", "missed": "1", "status": "idle", "needs.0": "failed", "run_id": "5", "result": "failed", "way_back.until": "complete", "way_back.closed_at": "2026-11-29T01:00:00Z",
			"next_upgrade_at": "2026-11-29T01:00:00Z", "skipped_window.by": "ann", "skipped_window.end": "2026-11-29T02:00:00Z",
		})},
		{Config: config("default"), Check: has(map[string]string{"declared": "false", "hosts": "2", "match.%": "null", "maintenance_windows.#": "null", "rollout.%": "null", "run_id": "null"})},
		{Config: config("gone"), Check: has(map[string]string{"declared": "false", "status": "upgrading", "run_id": "7", "result": "null", "way_back.%": "null", "match.%": "null"})},
		{Config: config("chur"), ExpectError: regexp.MustCompile(`(?s)Unable to read osupgrade_environment.*there\s+is\s+no\s+environment\s+chur`)},
		{Config: config("Basel"), PlanOnly: true, ExpectError: regexp.MustCompile(`"Basel"\s+is\s+not\s+a\s+name`)},
		{Config: config("basel")},
	}})
}
