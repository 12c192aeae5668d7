package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// basel is the environment basel with these attributes.
func basel(body string) string {
	return "resource \"osupgrade_environment\" \"basel\" {\n name = \"basel\"\n" + body + "\n}\n"
}

const (
	ofBasel   = `match = { labels = { shop = "basel" } }`
	baselShop = ofBasel + `
 description = "Shop in Basel"
 maintenance_windows = [
   { days_of_week = ["Tuesday", "Monday"], start_time = "02:00", timezone = "Europe/Zurich", duration = "180m" },
   { days_of_week = ["Sunday"], start_time = "04:00", duration = "2h" },
 ]
 calendars = []
 rollout = { stages = [{ name = "all", max_unavailable = 2 }], command_timeouts = { reboot = "20m" } }`
)

// TestEnvironment takes an environment through its life at the real agent: each value arrives, another
// form of it is no change, what others change is shown and undone, and it is imported as it is.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	api := rest(t, site.Server)
	const address = "osupgrade_environment.basel"
	has := func(want v1.Environment) resource.TestCheckFunc {
		return func(*terraform.State) error {
			stored, err := client.EnvironmentNamed("basel").Get(t.Context(), api, acctest.Tenant)
			got := stored.Value
			if err == nil && !v1.SameEnvironment(got, want) {
				t.Errorf("the site has %+v, want %+v", got, want)
			}
			return err
		}
	}
	few := v1.Environment{Match: v1.Match{Labels: map[string]string{"shop": "basel"}}}
	all := few
	all.Description = "Shop in Basel"
	all.MaintenanceWindows = []v1.MaintenanceWindow{
		{DaysOfWeek: "Monday, Tuesday", StartTime: "02:00", Timezone: "Europe/Zurich", Duration: "3h"},
		{DaysOfWeek: "Sunday", StartTime: "04:00", Timezone: "site-local", Duration: "2h"},
	}
	all.Calendars = []string{}
	all.Rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "2"}}, Timeouts: &v1.CommandTimeouts{Reboot: "20m"}}
	byHand := func() {
		other := all
		other.Rollout = &v1.Rollout{Paused: true}
		if _, err := client.EnvironmentNamed("basel").Put(t.Context(), api, acctest.Tenant, client.Stored[v1.Environment]{}, other, client.Precondition{}); err != nil {
			t.Error(err)
		}
	}
	acctest.Run(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if all, err := api.Environments(t.Context(), acctest.Tenant); err != nil || len(all) > 0 {
				t.Errorf("after destroy there are %v, %v", all, err)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: site.Config(basel(ofBasel)), ConfigPlanChecks: plans(address, plancheck.ResourceActionCreate), Check: has(few)},
			{Config: site.Config(basel(baselShop)), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: has(all)},
			{Config: site.Config(strings.NewReplacer("180m", "3h", `duration = "2h"`, `duration = "120m", timezone = "site-local"`, "20m", "1200s").Replace(basel(baselShop))), ConfigPlanChecks: plans(address, plancheck.ResourceActionNoop)},
			{PreConfig: byHand, Config: site.Config(basel(baselShop)), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: has(all)},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/basel", ImportStateKind: resource.ImportBlockWithID},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/basel", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name", ImportStateVerifyIgnore: []string{"maintenance_windows"}},
			{Config: site.Config(basel(ofBasel)), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: has(few)},
			{Config: site.Config(strings.Replace(basel(ofBasel), `name = "basel"`, `name = "bern"`, 1)), ConfigPlanChecks: plans(address, plancheck.ResourceActionReplace)},
		},
	})
}

// TestEnvironment_refused: each mistake is refused at plan, at its attribute.
func TestEnvironment_refused(t *testing.T) {
	t.Parallel()
	_, server := acctest.Fake(t)
	window := func(start string) string {
		return ofBasel + "\n maintenance_windows = [{ days_of_week = [\"Monday\"], start_time = \"" + start + "\", duration = \"1h\" }]"
	}
	var steps []resource.TestStep
	for _, row := range []struct{ config, says string }{
		{basel(""), `The argument "match" is required`},
		{basel("match = {}"), "say which hosts belong to the environment"},
		{strings.Replace(basel(ofBasel), `name = "basel"`, `name = "default"`, 1), `"default" cannot be declared`},
		{strings.Replace(basel(ofBasel), `name = "basel"`, `name = "Basel"`, 1), `"Basel" is not the name of an environment`},
		{basel(window("26:00")), `"26:00" is not a time of day`},
		{basel(ofBasel + "\n calendars = [\"No calendar\"]"), `"No calendar" is not the name of a calendar`},
		{basel(ofBasel + "\n rollout = { stages = [{ name = \"all\", max_unavailable = 0 }] }"), `rollout.stages`},
		{basel(ofBasel + "\n rollout = { command_timeouts = { reboot = \"1h1\" } }"), `rollout.command_timeouts.reboot`},
		{basel(ofBasel + "\n rollout = { on_failure = \"panic\" }"), `"panic"`},
	} {
		steps = append(steps, resource.TestStep{Config: server.Config(row.config), PlanOnly: true, ExpectError: spoken(row.says)})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

// TestEnvironment_isWarnedOf: a plan warns of a label that no host has, of hosts that another
// environment matches too, of a calendar that is not there, and refuses a name that is taken. A
// calendar that the same plan creates is no reason for a warning.
func TestEnvironment_isWarnedOf(t *testing.T) {
	t.Parallel()
	server, _ := realagent.Start(t, 1)
	every := v1.Environment{Match: v1.Match{Applications: []string{"os-upgrade-simulated"}}}
	if _, err := client.EnvironmentNamed("every").Put(t.Context(), rest(t, server), acctest.Tenant, client.Stored[v1.Environment]{}, every, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	const mine = `match = { hosts = ["h01"] }`
	for name, row := range map[string]struct {
		config, want string
		code         int
	}{
		"a label without hosts":        {config: basel(`match = { labels = { shop = "basle" } }`), want: "match.labels"},
		"hosts of another":             {config: basel(`match = { applications = ["os-upgrade-simulated"] }`), want: "every"},
		"a calendar that is not there": {config: basel(mine + "\n calendars = [\"inventory\"]"), want: "inventory"},
		"a calendar of the same plan":  {config: basel(mine+"\n calendars = [osupgrade_calendar.inventory.name]") + "resource \"osupgrade_calendar\" \"inventory\" {\n name = \"inventory\"\n kind = \"allow\"\n}\n"},
		"a name that is taken":         {config: strings.Replace(basel(mine), `name = "basel"`, `name = "every"`, 1), want: "Environment every of tenant acme has match already", code: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := acctest.NewWorkspace(t, server.Env()...)
			w.Write(t, "main.tf", acctest.Requirement+row.config)
			told := strings.Join(acctest.Diagnostics(t, planned(w.Run(t, row.code, "plan", "-json")))["osupgrade_environment.basel"], "\n")
			if !strings.Contains(told, row.want) || (told == "") != (row.want == "") {
				t.Errorf("no %q in %s", row.want, told)
			}
		})
	}
}

// TestEnvironment_sixtyShops applies sixty environments and a disruption budget in one plan.
func TestEnvironment_sixtyShops(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	w := acctest.NewWorkspace(t, site.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+`
locals {
  shops = { for n in range(60) : format("shop-%02d", n) => { zone = n % 2 == 0 ? "Europe/Berlin" : "Europe/Lisbon", night = n % 3 == 0 ? "Monday" : "Tuesday" } }
}
resource "osupgrade_environment" "shop" {
  for_each = local.shops
  name     = each.key
  match    = { labels = { shop = each.key } }
  maintenance_windows = [{ days_of_week = [each.value.night], start_time = "02:00", timezone = each.value.zone, duration = "3h" }]
}
resource "osupgrade_disruption_budget" "shops" {
  name            = "shops"
  per             = "shop"
  max_unavailable = "1"
}
`)
	timed := func(what string, do func()) {
		began := time.Now()
		do()
		t.Logf("%s took %s", what, time.Since(began).Round(100*time.Millisecond))
	}
	timed("apply", func() {
		if out := w.Run(t, 0, "apply", "-auto-approve", "-no-color"); !strings.Contains(out, "61 added") {
			t.Errorf("not all were created: %s", out)
		}
	})
	timed("plan", func() { w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color") })
	all, err := rest(t, site.Server).StoredEnvironments(t.Context(), acctest.Tenant)
	if err != nil || len(all) != 60 {
		t.Fatalf("the site has %d environments, %v", len(all), err)
	}
	for n := range 60 {
		name := fmt.Sprintf("shop-%02d", n)
		if got := all[name].Value; got.Match.Labels["shop"] != name || len(got.MaintenanceWindows) != 1 {
			t.Errorf("%s is %+v", name, got)
		}
	}
	timed("destroy", func() { w.Run(t, 0, "destroy", "-auto-approve", "-no-color") })
}

// TestEnvironment_runsSideBySide: a run of one environment waits for an approval while the run of the
// other completes, and an action that names the environment ends the one that waits.
func TestEnvironment_runsSideBySide(t *testing.T) {
	t.Parallel()
	server, _ := realagent.Start(t, 2)
	api := rest(t, server)
	environments := func(basel string) string {
		return `
resource "osupgrade_config" "acme" {
  worker_applications = ["os-upgrade-simulated"]
}
resource "osupgrade_environment" "bern" {
  name          = "bern"
  match         = { hosts = ["h02"] }
  force_destroy = true
}
` + basel
	}
	basel := func(more string) string {
		return basel("match = { hosts = [\"h01\"] }\n rollout = { stages = [{ name = \"all\", approval = true }] }\n" + more)
	}
	both := environments(basel(""))
	run := func(name, environment, more string) string {
		return fmt.Sprintf("resource \"osupgrade_run\" %q {\n environment = %s\n override_window = true\n reason = \"a test\"\n%s\n}\n", name, environment, more)
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(both)},
		{Config: server.Config(both, run("any", "null", "")), ExpectError: spoken("environment to one of the environments that the server names")},
		{Config: server.Config(both, run("nowhere", `"chur"`, "")), ExpectError: spoken("there is no environment chur")},
		{
			Config: server.Config(both, run("basel", "osupgrade_environment.basel.name", "wait = false"), run("bern", "osupgrade_environment.bern.name", "depends_on = [osupgrade_run.basel]")),
			Check: resource.ComposeAggregateTestCheckFunc(
				resource.TestCheckResourceAttr("osupgrade_run.bern", "result", "completed"),
				resource.TestCheckResourceAttr("osupgrade_run.bern", "hosts.#", "1"),
				resource.TestCheckResourceAttr("osupgrade_run.bern", "hosts.0.hostname", "h02"),
				resource.TestCheckNoResourceAttr("osupgrade_run.basel", "result"),
				func(*terraform.State) error {
					aborted, err := api.Abort(t.Context(), acctest.Tenant, v1.Ask{Environment: "basel", Reason: "a test", Now: true})
					if err == nil && (aborted.Environment != "basel" || !aborted.Finished()) {
						t.Errorf("the run of basel is %+v", aborted)
					}
					return err
				},
			),
		},
		{
			ResourceName: "osupgrade_run.bern", ImportState: true, ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "run_id",
			ImportStateIdFunc: func(s *terraform.State) (string, error) {
				return s.RootModule().Resources["osupgrade_run.bern"].Primary.Attributes["run_id"], nil
			},
			ImportStateVerifyIgnore: []string{"override_window"},
		},
		{Config: server.Config(environments("")), ExpectError: spoken("environment basel is in use: it has 1 host (h01)")},
		{Config: server.Config(environments(basel("force_destroy = true")))},
	}})
}

// TestEnvironment_actions: an action that names an environment is about its run alone; without one, it
// says what to do while several runs are under way.
func TestEnvironment_actions(t *testing.T) {
	t.Parallel()
	server, _ := realagent.Start(t, 2)
	api, p := rest(t, server), configured(t, server)
	if _, err := api.PutConfig(t.Context(), acctest.Tenant, v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "os-upgrade-simulated"}}}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	for name, host := range map[string]string{"basel": "h01", "bern": "h02"} {
		held := v1.Environment{Match: v1.Match{Hosts: []string{host}}, Rollout: &v1.Rollout{Stages: []v1.Stage{{Name: "all", Approval: true}}}}
		if _, err := client.EnvironmentNamed(name).Put(t.Context(), api, acctest.Tenant, client.Stored[v1.Environment]{}, held, client.Precondition{}); err != nil {
			t.Fatal(err)
		}
	}
	asked := func(action string, config values) told {
		config["reason"] = text("because")
		return p.invoke(t, "osupgrade_"+action, config)
	}
	for _, name := range []string{"basel", "bern"} {
		if got := asked("start", values{"environment": text(name), "override_window": boolean(true), "wait": boolean(false)}); len(got.errors) > 0 {
			t.Fatalf("no run of %s starts: %q", name, got.errors)
		}
	}
	says(t, asked("pause", values{}).errors, "409.*run . of basel, run . of bern.*Set the attribute environment to one of the environments that the server names")
	says(t, asked("pause", values{"environment": text("chur")}).errors, "environment.*there is no environment chur.*Check the attribute environment")
	if got := asked("pause", values{"environment": text("bern")}); len(got.errors) > 0 {
		t.Errorf("bern cannot be paused: %q", got.errors)
	}
	all, err := api.Runs(t.Context(), acctest.Tenant, v1.RunFilter{})
	if err != nil || len(all) != 2 {
		t.Fatalf("the runs are %+v, %v", all, err)
	}
	for _, run := range all {
		if paused := run.Paused != ""; paused != (run.Environment == "bern") {
			t.Errorf("the run of %s is paused: %t", run.Environment, paused)
		}
	}
	if got := asked("abort", values{"all": boolean(true), "now": boolean(true)}); len(got.errors) > 0 || strings.Count(strings.Join(got.progress, "\n"), "ended: aborted") != 2 {
		t.Errorf("the runs of both cannot be aborted: %q", got)
	}
	if all, err = api.Runs(t.Context(), acctest.Tenant, v1.RunFilter{Result: "aborted"}); err != nil || len(all) != 2 {
		t.Errorf("the aborted runs are %+v, %v", all, err)
	}
	says(t, asked("abort", values{"all": boolean(true)}).progress, "^no run is in progress$")
}

// TestEnvironment_isRead: what one configuration declares another reads by the name, with what the
// environment is doing.
func TestEnvironment_isRead(t *testing.T) {
	t.Parallel()
	server, _ := realagent.Start(t, 1)
	const address = "data.osupgrade_environment.basel"
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: server.Config(basel("match = { hosts = [\"h01\"] }\n force_destroy = true\n rollout = { on_failure = \"pause\" }"),
			"resource \"osupgrade_config\" \"acme\" {\n worker_applications = [\"os-upgrade-simulated\"]\n depends_on = [osupgrade_environment.basel]\n}\n",
			"data \"osupgrade_environment\" \"basel\" {\n name = osupgrade_environment.basel.name\n depends_on = [osupgrade_config.acme]\n}\n"),
		Check: resource.ComposeAggregateTestCheckFunc(
			resource.TestCheckResourceAttr(address, "declared", "true"), resource.TestCheckResourceAttr(address, "hosts", "1"), resource.TestCheckResourceAttr(address, "status", "idle"),
			resource.TestCheckResourceAttr(address, "rollout.on_failure", "pause"), resource.TestCheckNoResourceAttr(address, "maintenance_windows.#"),
			resource.TestCheckResourceAttrPair(address, "match", "osupgrade_environment.basel", "match"),
		),
	}}})
}

// TestEnvironment_skipsItsWindow: the action skips the next window of the environment, the same one when
// it is invoked again, and the data source shows it.
func TestEnvironment_skipsItsWindow(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	shop := v1.Environment{
		Match:              v1.Match{Labels: map[string]string{"shop": "basel"}},
		MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Monday, Thursday", StartTime: "02:00", Timezone: "UTC", Duration: "2h"}},
	}
	api := rest(t, site.Server)
	if _, err := api.PutConfig(t.Context(), acctest.Tenant, v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "till"}}}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.EnvironmentNamed("basel").Put(t.Context(), api, acctest.Tenant, client.Stored[v1.Environment]{}, shop, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	p := configured(t, site.Server)
	for _, reason := range []string{"inventory", "another"} {
		got := p.invoke(t, "osupgrade_skip_window", values{"environment": text("basel"), "reason": text(reason)})
		if len(got.errors) > 0 {
			t.Fatal(got.errors)
		}
		says(t, got.progress, `^the window from \S+T02:00:00Z to \S+T04:00:00Z is skipped by \S+: inventory$`)
	}
	got := p.invoke(t, "osupgrade_skip_window", values{"environment": text("chur"), "reason": text("inventory")})
	says(t, got.errors, "there is no environment chur.*Check the attribute environment")
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: site.Config("data \"osupgrade_environment\" \"basel\" {\n name = \"basel\"\n}\n"),
		Check:  resource.TestCheckResourceAttr("data.osupgrade_environment.basel", "skipped_window.reason", "inventory"),
	}}})
}
