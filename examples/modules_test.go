package examples_test

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// TestModules lives through each example of modules/ as its user would: init, validate,
// plan, apply, a plan without a difference, destroy. All use one site, a tenant each.
func TestModules(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, "fleet", "acme", "stores-north", "stores-south", "warehouse", "drift", "windows", "plant", "shops", "platform")
	for name, test := range map[string]func(*testing.T, realagent.Site){
		"fleet": fleetModule, "tenants": tenantsModule, "import": importModule, "drift": driftWorkflow,
		"windows": windowsModule, "owners": ownersModule, "shops": shopsModule, "platform": platformModule,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, site)
		})
	}
}

// module lays the example out in a workspace, with those beside it.
func module(t *testing.T, server acctest.Server, name string) *acctest.Workspace {
	t.Helper()
	w := acctest.NewMirrorWorkspace(t, server.Env()...)
	adapt := strings.NewReplacer("http://127.0.0.1:4646", server.Endpoint, `"osupgrade/osupgrade"`, `"`+acctest.Source+`"`)
	err := filepath.WalkDir("modules", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.Contains(path, ".terraform") {
			return err
		}
		text, err := os.ReadFile(path)
		w.Write(t, path, adapt.Replace(string(text)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Dir = filepath.Join(w.Dir, "modules", name)
	w.Run(t, 0, "init", "-no-color")
	w.Run(t, 0, "validate", "-no-color")
	return w
}

// live plans and applies what is in the workspace, plans again without a difference, and
// returns what the CLI has printed.
func live(t *testing.T, w *acctest.Workspace) string {
	t.Helper()
	out := w.Run(t, 2, "plan", "-detailed-exitcode", "-no-color", "-out=saved.plan")
	out += w.Run(t, 0, "apply", "-no-color", "saved.plan")
	w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
	return out
}

// fleetModule runs the tests that the module brings along, and the module from a root
// that uses it.
func fleetModule(t *testing.T, site realagent.Site) {
	server := site.Server
	server.Tenant = "fleet"
	w := module(t, server, "fleet")
	if out := w.Run(t, 0, "test", "-no-color"); !strings.Contains(out, " 9 passed, 0 failed") {
		t.Errorf("terraform test ran other tests than the module has:\n%s", out)
	}
	w.Write(t, "../root/main.tf", acctest.Requirement+`
module "fleet" {
  source              = "../fleet"
  worker_applications = ["appliance"]
  maintenance_windows = [{ days_of_week = ["Friday"], start_time = "22:00", duration = "4h" }]
  freezes             = { christmas = { ics = file("christmas.ics") } }
  canary              = { hosts = ["h01"], approval = true }
  checks              = { after_host = [{ type = "disk", path = "/var", min_free = "10%" }, { type = "tcp", address = "127.0.0.1:22" }] }
  hooks               = { drain = { type = "http", url = "http://127.0.0.1/drain" } }
}
output "next" {
  value = provider::osupgrade::next_windows(module.fleet.maintenance_windows, module.fleet.calendars, "2026-12-18T00:00:00Z", 2)
}
`)
	w.Write(t, "../root/christmas.ics", strings.ReplaceAll(`BEGIN:VCALENDAR
VERSION:2.0
PRODID:test
BEGIN:VEVENT
UID:1
DTSTAMP:20260101T000000Z
DTSTART;VALUE=DATE:20261220
DTEND;VALUE=DATE:20270107
END:VEVENT
END:VCALENDAR
`, "\n", "\r\n"))
	w.Dir = filepath.Join(filepath.Dir(w.Dir), "root")
	w.Run(t, 0, "init", "-no-color")
	if out := live(t, w); !strings.Contains(out, "3 added") || !strings.Contains(out, "2027-01-08T22:00:00Z") {
		t.Errorf("want three resources and the window after the freeze:\n%s", out)
	}
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
	gone(t, server, "fleet")
}

func tenantsModule(t *testing.T, site realagent.Site) {
	server := site.Server
	w := module(t, server, "tenants")
	if out := live(t, w); !strings.Contains(out, "9 added") {
		t.Errorf("want configuration, rollout and freeze of three tenants:\n%s", out)
	}
	rollout, _, err := rest(t, server).Rollout(t.Context(), "warehouse")
	if err != nil || len(rollout.Stages) != 1 {
		t.Errorf("the tenant without a canary has the rollout %+v, %v", rollout, err)
	}
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
	for _, tenant := range []string{"stores-north", "stores-south", "warehouse"} {
		gone(t, server, tenant)
	}
}

// windowsModule runs the tests that the module brings along.
func windowsModule(t *testing.T, site realagent.Site) {
	server := site.Server
	server.Tenant = "windows"
	w := module(t, server, "windows")
	if out := w.Run(t, 0, "test", "-no-color"); !strings.Contains(out, " 4 passed, 0 failed") {
		t.Errorf("terraform test ran other tests than the module has:\n%s", out)
	}
}

// ownersModule has the windows of two modules and those of another state in one tenant.
// Each state changes and destroys its own, and plans no difference because of the other.
func ownersModule(t *testing.T, site realagent.Site) {
	server := site.Server
	server.Tenant = "plant"
	w := module(t, server, "owners")
	if out := live(t, w); !strings.Contains(out, "6 added") {
		t.Errorf("want configuration, rollout, freeze and three windows:\n%s", out)
	}
	other := module(t, server, "windows")
	other.Dir = filepath.Join(filepath.Dir(other.Dir), "root")
	team := func(duration string) {
		other.Write(t, "main.tf", acctest.Requirement+`
module "team" {
  source  = "../windows"
  windows = { friday = { days_of_week = ["Friday"], start_time = "20:00", duration = "`+duration+`" } }
}
`)
	}
	if err := os.MkdirAll(other.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	team("3h")
	other.Run(t, 0, "init", "-no-color")
	live(t, other)
	windows(t, server, 4)
	team("5h")
	live(t, other)
	windows(t, server, 4)
	w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
	windows(t, server, 1)
	other.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
	other.Run(t, 0, "destroy", "-auto-approve", "-no-color")
	windows(t, server, 0)
}

// shopsModule has an environment for each shop. A shop that is added to the map or taken out of it
// changes no other.
func shopsModule(t *testing.T, site realagent.Site) {
	server := site.Server
	server.Tenant = "shops"
	w := module(t, server, "shops")
	out := live(t, w)
	for _, want := range []string{"6 added", "Shops without hosts: basel, bern, lisbon."} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "No window lies ahead") {
		t.Errorf("the tenant is warned of windows that its shops have:\n%s", out)
	}
	all, err := rest(t, server).StoredEnvironments(t.Context(), "shops")
	if err != nil || len(all) != 3 || all["bern"].Value.MaintenanceWindows[0] != (v1.MaintenanceWindow{DaysOfWeek: "Sunday", StartTime: "02:00", Timezone: "Europe/Zurich", Duration: "3h"}) {
		t.Errorf("the site has the environments %+v, %v", all, err)
	}
	w.Write(t, "shops.auto.tfvars", "shops = {\n bern = { zone = \"Europe/Zurich\" , nights = [\"Sunday\"] }\n lisbon = { zone = \"Europe/Lisbon\" }\n porto = { zone = \"Europe/Lisbon\" }\n}\n")
	if out := live(t, w); !strings.Contains(out, "1 added, 0 changed, 1 destroyed") {
		t.Errorf("want one shop more and one less:\n%s", out)
	}
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
	gone(t, server, "shops")
	if all, err := rest(t, server).Environments(t.Context(), "shops"); err != nil || len(all) > 0 {
		t.Errorf("after destroy there are the environments %v, %v", all, err)
	}
}

// prescribedOrders are the orders of a platform upgrade for each topology, as those who build the platform
// prescribe them: data first, the standby controller before the active one, storage before workers, and
// the old data last.
var prescribedOrders = map[string][]string{
	"simplex": {
		"platform-start on controller", "platform-copy on controller", "upgrade controller, 1 at once", "platform-restore on controller",
		"platform-unlock on controller", "platform-activate on controller", "platform-complete on controller, approved, no way back",
	},
	"duplex": {
		"platform-start on controller active=true", "platform-join on controller active=true", "upgrade controller active=false, 1 at once",
		"platform-swact on controller active=true", "upgrade controller, 1 at once",
		"platform-activate on controller active=true", "platform-swact on controller active=true", "platform-complete on controller active=true, approved, no way back",
	},
	"standard": {
		"platform-start on controller active=true", "platform-join on controller active=true", "upgrade controller active=false, 1 at once",
		"platform-swact on controller active=true", "upgrade controller, 1 at once", "upgrade worker, 10% at once",
		"platform-activate on controller active=true", "platform-swact on controller active=true", "platform-complete on controller active=true, approved, no way back",
	},
	"dedicated-storage": {
		"platform-start on controller active=true", "platform-join on controller active=true", "upgrade controller active=false, 1 at once",
		"platform-swact on controller active=true", "upgrade controller, 1 at once", "upgrade storage, 50% at once", "upgrade worker, 10% at once",
		"platform-activate on controller active=true", "platform-swact on controller active=true", "platform-complete on controller active=true, approved, no way back",
	},
}

// platformModule writes the stages of each topology into a rollout, which the site takes, and compares
// them step by step with the prescribed order.
func platformModule(t *testing.T, site realagent.Site) {
	server := site.Server
	server.Tenant = "platform"
	w := module(t, server, "platform")
	w.Dir = filepath.Join(filepath.Dir(w.Dir), "upgrade")
	if err := os.MkdirAll(w.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w.Write(t, "main.tf", acctest.Requirement+`
variable "topology" {
  type = string
}
variable "point_of_no_return" {
  type    = string
  default = "complete"
}
module "platform" {
  source             = "../platform"
  topology           = var.topology
  point_of_no_return = var.point_of_no_return
  prometheus         = "http://127.0.0.1:9090"
}
resource "osupgrade_rollout" "platform" {
  stages         = module.platform.stages
  checks         = { start = module.platform.health }
  on_failure     = "pause"
  freeze_changes = true
}
`)
	w.Run(t, 0, "init", "-no-color")
	for topology, want := range prescribedOrders {
		w.Run(t, 0, "apply", "-auto-approve", "-no-color", "-var=topology="+topology)
		w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color", "-var=topology="+topology)
		rollout, _, err := rest(t, server).Rollout(t.Context(), "platform")
		if err != nil {
			t.Fatal(err)
		}
		if got := orderOf(rollout); !slices.Equal(got, want) {
			t.Errorf("%s: the order is\n%s\nnot\n%s", topology, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if out := w.Run(t, 1, "plan", "-no-color", "-var=topology=duplex", "-var=point_of_no_return=storage"); !strings.Contains(strings.Join(strings.Fields(out), " "), "storage is no stage of this topology") {
		t.Errorf("a stage that there is not is the point of no return: %s", out)
	}
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color", "-var=topology=duplex")
}

// orderOf tells the stages of a rollout, each in a line.
func orderOf(r v1.Rollout) (lines []string) {
	who := func(m *v1.Match) string {
		text := strings.Join(m.Roles, " ")
		for key, value := range m.Labels {
			text += " " + key + "=" + value
		}
		return text
	}
	for _, s := range r.Stages {
		line := ""
		if s.Step != nil {
			line = s.Step.Do.Script + " on " + who(s.Step.Match)
		} else {
			line = "upgrade " + who(s.Match) + ", " + cmp.Or(string(s.MaxUnavailable), "1") + " at once"
		}
		if s.Approval {
			line += ", approved"
		}
		if s.PointOfNoReturn {
			line += ", no way back"
		}
		lines = append(lines, line)
	}
	return lines
}

// TestShops_withHosts: a shop that leaves the map, and destroy, take their environments away although
// these have hosts, which are then in default.
func TestShops_withHosts(t *testing.T) {
	t.Parallel()
	server, _ := realagent.StartLabelled(t, 2, map[string]map[string]string{"h01": {"shop": "basel"}, "h02": {"shop": "bern"}})
	w := module(t, server, "shops")
	text, err := os.ReadFile(filepath.Join(w.Dir, "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	w.Write(t, "main.tf", strings.Replace(string(text), `["appliance"]`, `["os-upgrade-simulated"]`, 1))
	if out := live(t, w); !strings.Contains(out, "Shops without hosts: lisbon.") {
		t.Errorf("want two shops with hosts:\n%s", out)
	}
	api := rest(t, server)
	places := func(want map[string]string) {
		t.Helper()
		hosts, err := api.Hosts(t.Context(), acctest.Tenant, "")
		if err != nil || len(hosts) != len(want) {
			t.Fatalf("the hosts are %+v, %v", hosts, err)
		}
		for _, h := range hosts {
			if h.Environment != want[h.Hostname] {
				t.Errorf("%s is in %q, want %q", h.Hostname, h.Environment, want[h.Hostname])
			}
		}
	}
	places(map[string]string{"h01": "basel", "h02": "bern"})
	w.Write(t, "shops.auto.tfvars", "shops = {\n bern = { zone = \"Europe/Zurich\" }\n lisbon = { zone = \"Europe/Lisbon\" }\n}\n")
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	places(map[string]string{"h01": "default", "h02": "bern"})
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
	if all, err := api.Environments(t.Context(), acctest.Tenant); err != nil || len(all) > 0 {
		t.Errorf("after destroy there are the environments %v, %v", all, err)
	}
}

// windows checks how many windows a tenant has.
func windows(t *testing.T, server acctest.Server, want int) {
	t.Helper()
	config, _, err := rest(t, server).Config(t.Context(), server.Tenant)
	if err != nil || len(config.MaintenanceWindows) != want {
		t.Errorf("tenant %s has the windows %+v, %v; want %d", server.Tenant, config.MaintenanceWindows, err, want)
	}
}

// importModule takes over what somebody has configured by hand: nothing is written.
func importModule(t *testing.T, site realagent.Site) {
	server := site.Server
	server.Tenant = "acme"
	byHand(t, server)
	_, before, err := rest(t, server).Config(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	w := module(t, server, "import")
	if out := live(t, w); !strings.Contains(out, "4 imported, 0 added, 0 changed, 0 destroyed") {
		t.Errorf("want four imports and nothing else:\n%s", out)
	}
	if _, after, err := rest(t, server).Config(t.Context(), "acme"); err != nil || after != before {
		t.Errorf("the import has written the configuration: %v and %v, %v", before, after, err)
	}
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
	gone(t, server, "acme")
}

// byHand configures the tenant of the import example as an operator without Terraform.
func byHand(t *testing.T, server acctest.Server) {
	t.Helper()
	api, none := rest(t, server), client.Precondition{}
	for name, event := range map[string]v1.Event{
		"christmas": {Start: "2026-12-20", End: "2027-01-07", AllDay: true},
		"inventory": {Start: "2027-02-01", Duration: "2d", AllDay: true},
	} {
		if _, err := api.PutCalendar(t.Context(), "acme", name, v1.Calendar{Kind: "freeze", Events: []v1.Event{event}}, none); err != nil {
			t.Fatal(err)
		}
	}
	rollout := v1.Rollout{Stages: []v1.Stage{
		{Name: "canary", Match: &v1.Match{Labels: map[string]string{"ring": "0"}}, Soak: "1800s"}, {Name: "rest", MaxUnavailable: "10%"},
	}}
	if _, err := api.PutRollout(t.Context(), "acme", rollout, none); err != nil {
		t.Fatal(err)
	}
	if _, err := api.PutConfig(t.Context(), "acme", v1.OSUpgrade{
		WorkerApplications: []v1.WorkerApplication{{Name: "appliance"}},
		MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "friday,Saturday", StartTime: "01:00", Timezone: "Europe/Stockholm", Duration: "240m"}},
	}, none); err != nil {
		t.Fatal(err)
	}
}

// TestPolicy: each rule of the example is kept, and is broken. It needs hosts.
func TestPolicy(t *testing.T) {
	t.Parallel()
	server, _ := realagent.Start(t, 2)
	w := module(t, server, "policy")
	if out := live(t, w); strings.Contains(out, "Check block assertion failed") {
		t.Errorf("the example breaks its own rules:\n%s", out)
	}
	// A simulated host has a next version to offer at any time.
	for outdated := 0; outdated < 2; {
		all, err := rest(t, server).Hosts(t.Context(), server.Tenant, "")
		if err != nil {
			t.Fatal(err)
		}
		outdated = 0
		for _, h := range all {
			if h.OutdatedSince != nil {
				outdated++
			}
		}
		if err := wait.Sleep(t.Context(), 50*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	for variables, want := range map[string]string{
		`outdated_days=0`:        "Outdated for more than 0 days: h01, h02.",
		`outdated_days=1`:        "",
		`maintenance_windows=[]`: "No window opens within seven days; the next one is never.",
		`maintenance_windows=[{days_of_week=["Friday"],start_time="07:30",duration="1h"}]`: "Hosts may be upgraded in business hours, first at",
		// The window is open before the business hours and after them.
		`maintenance_windows=[{days_of_week=["Friday"],start_time="07:00",duration="1d"}]`: "Hosts may be upgraded in business hours, first at",
		// 07:30 UTC is 08:30 or 09:30 in Stockholm.
		`maintenance_windows=[{days_of_week=["Friday"],start_time="07:30",duration="20m",timezone="UTC"}]`: "Hosts may be upgraded in business hours, first at",
		`maintenance_windows=[{days_of_week=["Saturday"],start_time="07:30",duration="20m"}]`:              "",
	} {
		out := strings.Join(strings.Fields(w.Run(t, 0, "plan", "-no-color", "-var", variables)), " ")
		if broken := strings.Count(out, "Check block assertion failed"); !strings.Contains(out, want) || (broken > 0) != (want != "") || broken > 1 {
			t.Errorf("%s: want %q, and no other check fails:\n%s", variables, want, out)
		}
	}
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
}

func rest(t *testing.T, server acctest.Server) *client.Client {
	t.Helper()
	api, err := client.New(client.Options{Endpoint: server.Endpoint, Token: server.Token})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// gone checks that a tenant has neither configuration nor rollout nor calendars.
func gone(t *testing.T, server acctest.Server, tenant string) {
	t.Helper()
	api := rest(t, server)
	if _, _, err := api.Config(t.Context(), tenant); !client.HasStatus(err, 404) {
		t.Errorf("after destroy the configuration of %s reads as %v", tenant, err)
	}
	if _, _, err := api.Rollout(t.Context(), tenant); !client.HasStatus(err, 404) {
		t.Errorf("after destroy the rollout of %s reads as %v", tenant, err)
	}
	if calendars, err := api.Calendars(t.Context(), tenant); err != nil || len(calendars) > 0 {
		t.Errorf("after destroy %s has the calendars %v, %v", tenant, calendars, err)
	}
}
