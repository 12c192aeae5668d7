package state_test

import (
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

const (
	address = "data.osupgrade_state.test"
	block   = "data \"osupgrade_state\" \"test\" {}\n"
)

func text(value string) knownvalue.Check { return knownvalue.StringExact(value) }

func object(fields map[string]knownvalue.Check) knownvalue.Check {
	return knownvalue.ObjectExact(fields)
}

func list(elements ...knownvalue.Check) knownvalue.Check { return knownvalue.ListExact(elements) }

func has(want map[string]knownvalue.Check) []statecheck.StateCheck {
	var checks []statecheck.StateCheck
	for name, check := range want {
		checks = append(checks, statecheck.ExpectKnownValue(address, tfjsonpath.New(name), check))
	}
	return checks
}

func TestAccState_complete(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	at := time.Date(2026, 11, 27, 1, 0, 0, 0, time.FixedZone("CET", 3600))
	api.SetState(acctest.Tenant, v1.State{
		OSUpgrade: v1.OSUpgrade{
			WorkerApplications: []v1.WorkerApplication{{Name: "b"}, {Name: "a"}},
			MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Saturday, Friday", StartTime: "01:00", Duration: "4h"}},
		},
		Situation: v1.Situation{Status: "idle", NextUpgradeAt: &at}, NextUpgradeIn: "1d4h18s",
		ScheduledWorkers: []v1.ScheduledWorker{{Host: "h01", Application: "a"}},
		LastUpgradeInfo: &v1.LastUpgradeInfo{
			StartTime: at.Add(-time.Hour), EndTime: at.Add(-time.Minute), Result: "failed",
			Hosts: []v1.UpgradedHost{{Hostname: "h01", Status: "failed", Error: "no space"}, {Hostname: "h02", Status: "upgraded"}},
		},
	})
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: server.Config(block),
		ConfigStateChecks: has(map[string]knownvalue.Check{
			"tenant":              text("acme"),
			"site":                knownvalue.Null(),
			"worker_applications": knownvalue.SetExact([]knownvalue.Check{text("a"), text("b")}),
			"maintenance_windows": list(object(map[string]knownvalue.Check{
				"days_of_week": knownvalue.SetExact([]knownvalue.Check{text("Friday"), text("Saturday")}),
				"start_time":   text("01:00"), "timezone": text("site-local"), "duration": text("4h"),
			})),
			"status": text("idle"), "next_upgrade_in": text("1d4h18s"), "next_upgrade_at": text("2026-11-27T00:00:00Z"),
			"scheduled_workers": list(object(map[string]knownvalue.Check{"host": text("h01"), "application": text("a")})),
			"last_upgrade_info": object(map[string]knownvalue.Check{
				"start_time": text("2026-11-26T23:00:00Z"), "end_time": text("2026-11-26T23:59:00Z"), "result": text("failed"),
				"hosts": list(
					object(map[string]knownvalue.Check{"hostname": text("h01"), "status": text("failed"), "error": text("no space")}),
					object(map[string]knownvalue.Check{"hostname": text("h02"), "status": text("upgraded"), "error": knownvalue.Null()}),
				),
			}),
		}),
	}}})
}

// TestAccState_environments: they are read if there are some, in one request more.
func TestAccState_environments(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	at := time.Date(2026, 11, 27, 1, 0, 0, 0, time.UTC)
	api.SetEnvironments(acctest.Tenant,
		v1.EnvironmentStatus{Name: "basel", Status: "upgrading", Hosts: 4, Outdated: 3, Missed: 1, Needs: []string{"approval"}, Run: &v1.Run{ID: 7, WayBack: &v1.WayBack{Until: "complete"}}, Promotion: &v1.Promotion{
			Release: "spring", Was: "winter", Since: 5, Last: 7, Hosts: v1.PromotionHosts{Has: 3, Of: 4}, StepsDone: []string{"backup"}, WayBack: &v1.WayBack{Until: "complete", Closed: &at},
			RolledBack: &v1.PromotionRollback{Run: 9, At: at, By: "ann", Reason: "slow"},
		}},
		v1.EnvironmentStatus{
			Name: "bern", Status: "idle", Hosts: 2, NextUpgradeAt: &at, Run: &v1.Run{ID: 5, Result: "completed"},
			SkippedWindow: &v1.SkippedWindow{Start: at.Add(-24 * time.Hour), End: at.Add(-20 * time.Hour), By: "ann", Reason: "sale"},
		},
		v1.EnvironmentStatus{Name: "default", Status: "idle"},
	)
	number, none := knownvalue.Int64Exact, knownvalue.Null()
	row := func(name, status string, hosts, outdated, missed int64, needs, run, result, back, next, skipped, promotion knownvalue.Check) knownvalue.Check {
		return object(map[string]knownvalue.Check{
			"name": text(name), "status": text(status), "hosts": number(hosts), "outdated": number(outdated), "missed": number(missed),
			"needs": needs, "run_id": run, "result": result, "way_back": back, "next_upgrade_at": next, "skipped_window": skipped, "promotion": promotion,
		})
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: server.Config(block),
		ConfigStateChecks: has(map[string]knownvalue.Check{
			"environments": list(
				row("basel", "upgrading", 4, 3, 1, list(text("approval")), number(7), none, object(map[string]knownvalue.Check{"until": text("complete"), "closed_at": none}), none, none, object(map[string]knownvalue.Check{
					"release": text("spring"), "was": text("winter"), "since": number(5), "last": number(7), "hosts_have": number(3), "hosts": number(4), "steps_done": list(text("backup")),
					"way_back":    object(map[string]knownvalue.Check{"until": text("complete"), "closed_at": text("2026-11-27T01:00:00Z")}),
					"rolled_back": object(map[string]knownvalue.Check{"run_id": number(9), "at": text("2026-11-27T01:00:00Z"), "by": text("ann"), "reason": text("slow")}),
				})),
				row("bern", "idle", 2, 0, 0, list(), number(5), text("completed"), none, text("2026-11-27T01:00:00Z"),
					object(map[string]knownvalue.Check{"start": text("2026-11-26T01:00:00Z"), "end": text("2026-11-26T05:00:00Z"), "by": text("ann"), "reason": text("sale")}), none),
				row("default", "idle", 0, 0, 0, list(), none, none, none, none, none, none),
			),
			"environment": none, "unplaced": number(0),
		}),
	}}})
}

func TestAccState_nothingYet(t *testing.T) {
	t.Parallel()
	_, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: server.Config(block),
		ConfigStateChecks: has(map[string]knownvalue.Check{
			"worker_applications": knownvalue.SetSizeExact(0), "maintenance_windows": knownvalue.ListSizeExact(0),
			"scheduled_workers": knownvalue.ListSizeExact(0), "last_upgrade_info": knownvalue.Null(),
			"next_upgrade_in": knownvalue.Null(), "next_upgrade_at": knownvalue.Null(), "environments": list(), "environment": knownvalue.Null(),
		}),
	}}})
}

func TestAccState_siteAndTenant(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:            server.Config("data \"osupgrade_state\" \"test\" {\n tenant = \"beta\"\n site = \"north\"\n}\n"),
		ConfigStateChecks: has(map[string]knownvalue.Check{"tenant": text("beta"), "site": text("north")}),
	}}})
	for _, r := range api.Requests() {
		if r.Path != "/v1/state/tenants/beta/os-upgrade" || r.Query.Get("site") != "north" {
			t.Errorf("asked for %s?%s", r.Path, r.Query.Encode())
		}
	}
}

func TestAccState_errors(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config("data \"osupgrade_state\" \"test\" {\n site = \"North!\"\n}\n"), PlanOnly: true, ExpectError: regexp.MustCompile(`"North!"\s+is\s+not\s+a\s+name`)},
		{
			PreConfig: func() {
				api.Inject(http.MethodGet, "/os-upgrade", fakeapi.Raw(http.StatusBadGateway, "text/html", "<html>bad gateway</html>"), fakeapi.Raw(http.StatusBadGateway, "text/html", "<html>bad gateway</html>"))
			},
			Config:      server.Config(block),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(`(?s)Unable to read osupgrade_state.*Status: 502 Bad Gateway.*bad gateway`),
		},
		{
			PreConfig:   func() { api.OnlyTenants("beta") },
			Config:      server.Config(block),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(`tenant "acme" does not exist`),
		},
	}})
}
