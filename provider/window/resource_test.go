package window_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// On these days no window is open now, so that no plan warns.
var (
	oneDay   = time.Now().UTC().AddDate(0, 0, 3).Weekday().String()
	otherDay = time.Now().UTC().AddDate(0, 0, 4).Weekday().String()
)

func block(name, day, length string) string {
	return fmt.Sprintf("resource \"osupgrade_maintenance_window\" %q {\n days_of_week = [%q]\n start_time = \"01:00\"\n duration = %q\n}\n", name, day, length)
}

func on(day, length string) v1.MaintenanceWindow {
	return v1.MaintenanceWindow{DaysOfWeek: day, StartTime: "01:00", Timezone: "site-local", Duration: length}
}

// has checks that the server has exactly these windows.
func has(api *fakeapi.Server, want ...v1.MaintenanceWindow) resource.TestCheckFunc {
	return func(*terraform.State) error {
		got, _, _ := api.Config(acctest.Tenant)
		if !window.Same(got.MaintenanceWindows, want) {
			return fmt.Errorf("the server has %q, want %q", window.Keys(got.MaintenanceWindows), window.Keys(want))
		}
		if len(got.WorkerApplications) != 1 {
			return fmt.Errorf("the applications are %v", got.WorkerApplications)
		}
		return nil
	}
}

// shared returns a server on which others own a window and the applications.
func shared(t *testing.T) (*fakeapi.Server, acctest.Server, v1.MaintenanceWindow) {
	t.Helper()
	api, server := acctest.Fake(t)
	theirs := v1.MaintenanceWindow{DaysOfWeek: "Monday", StartTime: "05:00", Timezone: "UTC", Duration: "1h"}
	api.SetConfig(acctest.Tenant, v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "theirs"}}, MaintenanceWindows: []v1.MaintenanceWindow{theirs}})
	return api, server, theirs
}

func action(of plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction("osupgrade_maintenance_window.a", of)}}
}

func TestAccWindow_lifecycle(t *testing.T) {
	t.Parallel()
	api, server, theirs := shared(t)
	const address = "osupgrade_maintenance_window.a"
	acctest.Run(t, resource.TestCase{CheckDestroy: has(api, theirs), Steps: []resource.TestStep{
		{Config: server.Config(block("a", oneDay, "4h")), Check: has(api, theirs, on(oneDay, "4h"))},
		{Config: server.Config(block("a", oneDay, "240m")), ConfigPlanChecks: action(plancheck.ResourceActionNoop)},
		{
			Config:           server.Config(block("a", otherDay, "3h")),
			ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			Check:            has(api, theirs, on(otherDay, "3h")),
		},
		{
			Config: server.Config(block("a", otherDay, "3h")), ResourceName: address, ImportState: true, ImportStateId: "acme/" + otherDay + "@01:00/site-local/180m",
			ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "start_time",
		},
		{
			Config: server.Config(block("a", otherDay, "3h")), ResourceName: address, ImportState: true, ImportStateId: "acme/" + otherDay + "@02:00/site-local/3h",
			ExpectError: regexp.MustCompile(`(?s)has no window.*acme/` + otherDay + `@01:00/site-local/3h`),
		},
		{
			Config: server.Config(block("a", otherDay, "3h")), ResourceName: address, ImportState: true, ImportStateId: "acme/Someday@02:00/x",
			ExpectError: regexp.MustCompile(`is\s+not\s+a\s+tenant\s+and\s+a\s+window`),
		},
	}})
}

// TestAccWindow_changedByOthers: a window that others changed or removed is created again;
// what they made of it stays.
func TestAccWindow_changedByOthers(t *testing.T) {
	t.Parallel()
	api, server, theirs := shared(t)
	edit := func(list ...v1.MaintenanceWindow) func() {
		return func() { api.EditConfig(acctest.Tenant, func(c *v1.OSUpgrade) { c.MaintenanceWindows = list }) }
	}
	config := server.Config(block("a", oneDay, "4h"))
	acctest.Run(t, resource.TestCase{CheckDestroy: has(api, on(oneDay, "5h")), Steps: []resource.TestStep{
		{Config: config, Check: has(api, theirs, on(oneDay, "4h"))},
		{PreConfig: edit(theirs), Config: config, ConfigPlanChecks: action(plancheck.ResourceActionCreate), Check: has(api, theirs, on(oneDay, "4h"))},
		{PreConfig: edit(on(oneDay, "5h")), Config: config, ConfigPlanChecks: action(plancheck.ResourceActionCreate), Check: has(api, on(oneDay, "5h"), on(oneDay, "4h"))},
	}})
}

// TestAccWindow_refused: a window has one owner. All of this is found by the plan.
func TestAccWindow_refused(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ config, says string }{
		"twice in one configuration": {block("a", oneDay, "4h") + block("b", oneDay, "240m"), `Two resources own one maintenance window`},
		"beside a managed list":      {block("a", oneDay, "4h") + "resource \"osupgrade_config\" \"all\" {\n overwrite_existing = true\n maintenance_windows = []\n}", `Two resources (own|manage)`},
		"no day":                     {strings.ReplaceAll(block("a", oneDay, "4h"), `"`+oneDay+`"`, ""), `days_of_week`},
		"no duration":                {block("a", oneDay, "4 hours"), `(?s)duration.*not\s+a\s+duration`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server, theirs := shared(t)
			acctest.Run(t, resource.TestCase{CheckDestroy: has(api, theirs), Steps: []resource.TestStep{
				{Config: server.Config(row.config), PlanOnly: true, ExpectError: regexp.MustCompile(row.says)},
			}})
		})
	}
}

// many are windows of one tenant that differ in their time.
func many(name string, from, count int) string {
	return fmt.Sprintf(`%s
resource "osupgrade_maintenance_window" %q {
  count        = %d
  days_of_week = ["Monday", "Thursday"]
  start_time   = format("%%02d:%%02d", floor((count.index + %d) / 60), (count.index + %d) %% 60)
  timezone     = "UTC"
  duration     = "1m"
}
`, acctest.Requirement, name, count, from, from)
}

// TestWindows_ofTwoStatesAtOnce: two Terraform configurations with 49 windows each of one
// tenant are applied at once, with parallelism 10. All 98 are there, and a refresh of each
// is one request.
func TestWindows_ofTwoStatesAtOnce(t *testing.T) {
	t.Parallel()
	api, server, _ := shared(t)
	workspaces := []*acctest.Workspace{acctest.NewWorkspace(t, server.Env()...), acctest.NewWorkspace(t, server.Env()...)}
	atOnce := func(args ...string) {
		var all sync.WaitGroup
		for _, w := range workspaces {
			all.Go(func() { w.Run(t, 0, args...) })
		}
		all.Wait()
	}
	for i, w := range workspaces {
		w.Write(t, "main.tf", many(fmt.Sprintf("w%d", i), 100*i, 49))
	}
	atOnce("apply", "-auto-approve", "-parallelism=10", "-no-color")
	got, _, _ := api.Config(acctest.Tenant)
	if n := len(got.MaintenanceWindows); n != 99 {
		t.Errorf("the server has %d windows, want 99", n)
	}
	api.ForgetRequests()
	atOnce("plan", "-detailed-exitcode", "-no-color")
	if n := len(api.Requests()); n != 2 {
		t.Errorf("the two refreshes took %d requests, want 2", n)
	}
	atOnce("destroy", "-auto-approve", "-parallelism=10", "-no-color")
	if got, _, _ := api.Config(acctest.Tenant); len(got.MaintenanceWindows) != 1 {
		t.Errorf("the server has %d windows left, want 1", len(got.MaintenanceWindows))
	}
	if n := api.Answers(http.StatusPreconditionFailed); n == 0 {
		t.Log("the two never met")
	}
}

// TestWindow_editedByHand: somebody else makes the window longer. The plan creates the declared
// one again, and says that the longer one stays beside it.
func TestWindow_editedByHand(t *testing.T) {
	t.Parallel()
	api, server, theirs := shared(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+block("a", oneDay, "4h")+block("b", otherDay, "4h"))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	api.SetConfig(acctest.Tenant, v1.OSUpgrade{
		WorkerApplications: []v1.WorkerApplication{{Name: "theirs"}}, MaintenanceWindows: []v1.MaintenanceWindow{theirs, on(oneDay, "6h"), on(otherDay, "4h")},
	})
	const warning = "Somebody else changed this window, and both will open"
	out := w.Run(t, 0, "plan", "-no-color", "-input=false")
	if !strings.Contains(out, warning) || !strings.Contains(out, "- "+window.Key(on(oneDay, "6h"))) {
		t.Errorf("the plan does not warn of the edited window: %s", out)
	}
	for _, wrong := range []string{"- " + window.Key(theirs), "- " + window.Key(on(otherDay, "4h"))} {
		if strings.Contains(out, wrong) {
			t.Errorf("the plan names %q: %s", wrong, out)
		}
	}
	api.SetConfig(acctest.Tenant, v1.OSUpgrade{
		WorkerApplications: []v1.WorkerApplication{{Name: "theirs"}}, MaintenanceWindows: []v1.MaintenanceWindow{theirs, on(otherDay, "4h")},
	})
	if out := w.Run(t, 0, "plan", "-no-color", "-input=false"); strings.Contains(out, warning) {
		t.Errorf("the plan warns although the window was removed: %s", out)
	}
}

// TestWindow_isRemovedDuringARun: the deletion does not wait for the run, as the page says.
func TestWindow_isRemovedDuringARun(t *testing.T) {
	t.Parallel()
	api, server, theirs := shared(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+block("a", oneDay, "4h"))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	api.AddRun(acctest.Tenant, v1.Run{Phase: "upgrading"})
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
	if err := has(api, theirs)(nil); err != nil {
		t.Error(err)
	}
	page, err := os.ReadFile("../../docs/resources/maintenance_window.md")
	if err != nil || !strings.Contains(string(page), "which does not wait for a run in progress") {
		t.Errorf("the page does not say that a deletion does not wait: %v", err)
	}
}
