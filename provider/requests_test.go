package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// One of these days no window is open now, which takes further requests.
var (
	oneDay     = time.Now().UTC().AddDate(0, 0, 3).Weekday().String()
	anotherDay = time.Now().UTC().AddDate(0, 0, 4).Weekday().String()
)

// objects are the resources that own an object of a tenant, each with a first and a
// second configuration.
var objects = map[string][2]string{
	"config": {
		`resource "osupgrade_config" "a" { maintenance_windows = [{ days_of_week = ["` + oneDay + `"], start_time = "01:00", duration = "4h" }] }`,
		`resource "osupgrade_config" "a" { maintenance_windows = [{ days_of_week = ["` + anotherDay + `"], start_time = "01:00", duration = "4h" }] }`,
	},
	"config, all of it": {
		"resource \"osupgrade_config\" \"a\" {\n worker_applications = []\n maintenance_windows = [{ days_of_week = [\"" + oneDay + "\"], start_time = \"01:00\", duration = \"4h\" }]\n}",
		"resource \"osupgrade_config\" \"a\" {\n worker_applications = [\"x\"]\n maintenance_windows = [{ days_of_week = [\"" + oneDay + "\"], start_time = \"01:00\", duration = \"3h\" }]\n}",
	},
	"maintenance window": {
		"resource \"osupgrade_maintenance_window\" \"a\" {\n days_of_week = [\"" + oneDay + "\"]\n start_time = \"01:00\"\n duration = \"4h\"\n}",
		"resource \"osupgrade_maintenance_window\" \"a\" {\n days_of_week = [\"" + anotherDay + "\"]\n start_time = \"01:00\"\n duration = \"4h\"\n}",
	},
	"rollout": {
		`resource "osupgrade_rollout" "a" { reserve = "10m" }`,
		`resource "osupgrade_rollout" "a" { reserve = "20m" }`,
	},
	"freeze": {
		"resource \"osupgrade_calendar\" \"a\" {\n name = \"x\"\n kind = \"freeze\"\n events = [{ start = \"2099-01-01T00:00\", duration = \"1h\" }]\n}",
		"resource \"osupgrade_calendar\" \"a\" {\n name = \"x\"\n kind = \"freeze\"\n events = [{ start = \"2099-01-01T00:00\", duration = \"2h\" }]\n}",
	},
	"allow calendar": {
		"resource \"osupgrade_calendar\" \"a\" {\n name = \"x\"\n kind = \"allow\"\n events = [{ start = \"2099-01-01T00:00\", duration = \"2h\" }]\n}",
		"resource \"osupgrade_calendar\" \"a\" {\n name = \"x\"\n kind = \"allow\"\n events = [{ start = \"2099-01-01T00:00\", duration = \"1h\" }]\n}",
	},
}

// TestRequests_ofAChange: from plan to end of apply with a real CLI, a creation takes at most
// three requests, two of them in the apply, and an update six, three of them in the apply: an
// apply cannot be told from a plan with -refresh=false. A refresh takes one.
func TestRequests_ofAChange(t *testing.T) {
	t.Parallel()
	for name, configurations := range objects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			w := acctest.NewWorkspace(t, server.Env()...)
			for i, what := range []string{"creation", "update"} {
				api.ForgetRequests()
				w.Write(t, "main.tf", acctest.Requirement+configurations[i])
				w.Run(t, 0, "apply", "-auto-approve", "-no-color")
				if asked := api.Requests(); len(asked) > 3+3*i {
					t.Errorf("the %s took %d requests, want %d at most:%s", what, len(asked), 3+3*i, listed(asked))
				}
			}
			api.ForgetRequests()
			w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
			if asked := api.Requests(); len(asked) != 1 {
				t.Errorf("the refresh took %d requests, want 1:%s", len(asked), listed(asked))
			}
		})
	}
}

// TestRequests_ofManyCreations: a creation takes two requests, one at the plan and the write; the
// first ones of an apply, as many as Terraform makes at a time, are checked again.
func TestRequests_ofManyCreations(t *testing.T) {
	t.Parallel()
	const many, atATime = 40, 10
	api, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+fmt.Sprintf(manyConfigs, many))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	if asked := api.Requests(); len(asked) > 2*many+atATime {
		t.Errorf("%d creations took %d requests, want %d at most", many, len(asked), 2*many+atATime)
	}
}

// TestRequests_ofManyCalendars: a refresh of many calendars of a tenant takes two requests,
// sees what changed and what is gone, and keeps what this version does not know.
func TestRequests_ofManyCalendars(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.Newer()
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+`
resource "osupgrade_calendar" "many" {
  count  = 30
  name   = "c${count.index}"
  kind   = "allow"
  events = [{ start = "2099-01-01T00:00", duration = "1h" }]
}
`)
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	api.ForgetRequests()
	w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
	if asked := api.Requests(); len(asked) != 2 {
		t.Errorf("the refresh took %d requests, want 2:%s", len(asked), listed(asked))
	}
	api.SetCalendarBody(acctest.Tenant, "c7", `{"future":1,"kind":"allow","events":[{"start":"2099-01-01T00:00","duration":"2h"}]}`)
	api.RemoveCalendar(acctest.Tenant, "c8")
	if out := w.Run(t, 0, "apply", "-auto-approve", "-no-color"); !strings.Contains(out, "1 added, 1 changed, 0 destroyed") {
		t.Errorf("want one that is created again and one that is put back: %s", out)
	}
	if got, want := api.CalendarBody(acctest.Tenant, "c7"), `"future":1`; !strings.Contains(got, want) || !strings.Contains(got, `"1h"`) {
		t.Errorf("the server has %s, want %s and the event of one hour", got, want)
	}
	w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
}

func listed(requests []fakeapi.Request) string {
	var text strings.Builder
	for _, r := range requests {
		fmt.Fprintf(&text, "\n%s %s?%s: %d", r.Method, r.Path, r.Query.Encode(), r.Status)
	}
	return text.String()
}

// TestRequests_toADeadServer: a server that answers nothing costs a plan of thirty
// resources one request.
func TestRequests_toADeadServer(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, append(server.Env(), "OSUPGRADE_TIMEOUT=1s")...)
	w.Write(t, "main.tf", acctest.Requirement+`
resource "osupgrade_calendar" "many" {
  count = 30
  name  = "c${count.index}"
  kind  = "freeze"
}
`)
	for range 100 {
		api.Inject("", "", api.Hang())
	}
	// In its text the CLI shows the warning of one resource, which may be the one that asked.
	out := w.Run(t, 0, "plan", "-parallelism=1", "-json")
	if n := len(api.Requests()); n != 1 {
		t.Errorf("the plan made %d requests, want 1", n)
	}
	if n := strings.Count(out, "not sent, because an earlier request had no answer"); n < 29 {
		t.Errorf("%d of 29 resources say why: %s", n, out)
	}
}

// TestPlan_tellsThatTheTokenMayNotWrite: a plan with a token that may only read is possible,
// and says that its apply is not.
func TestPlan_tellsThatTheTokenMayNotWrite(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+objects["rollout"][0])
	api.Inject(http.MethodPut, "", fakeapi.Status(http.StatusForbidden, "no"))
	if out := w.Run(t, 0, "plan", "-no-color"); !strings.Contains(out, "The token may not write osupgrade_rollout") {
		t.Errorf("the plan does not say so: %s", out)
	}
}

// TestPlan_tellsWhatIsInTheWay: what exists already and a tenant that the token has no right
// on are told by the plan, of each resource; an apply is not needed to see it.
func TestPlan_tellsWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	for name, configurations := range objects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			for range 10 {
				api.Inject("", "", fakeapi.Status(http.StatusForbidden, "no right on tenant acme"))
			}
			w := acctest.NewWorkspace(t, server.Env()...)
			w.Write(t, "main.tf", acctest.Requirement+configurations[0])
			if out := w.Run(t, 0, "plan", "-no-color"); !strings.Contains(out, "no right on tenant acme") {
				t.Errorf("the plan does not say that there is no right: %s", out)
			}
			_, server = acctest.Fake(t)
			first, other := acctest.NewWorkspace(t, server.Env()...), acctest.NewWorkspace(t, server.Env()...)
			first.Write(t, "main.tf", acctest.Requirement+configurations[0])
			first.Run(t, 0, "apply", "-auto-approve", "-no-color")
			other.Write(t, "main.tf", acctest.Requirement+configurations[0])
			if out := words(other.Run(t, 0, "plan", "-no-color")); !strings.Contains(out, "What exists is managed from now on") {
				t.Errorf("the plan does not say that what it creates exists: %s", out)
			}
			if name == "maintenance window" {
				return // Another one is no obstacle.
			}
			other.Write(t, "main.tf", acctest.Requirement+configurations[1])
			if out := words(other.Run(t, 1, "plan", "-no-color")); !strings.Contains(out, "already, ") || !strings.Contains(out, "import {") {
				t.Errorf("the plan does not say that another exists: %s", out)
			}
		})
	}
}

// TestAliases_ofOneTenant: two resources for one tenant in two aliases of the provider are
// two processes, which know nothing of each other. The apply finds them out and names the
// case: it warns of identical blocks, and refuses others.
func TestAliases_ofOneTenant(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	const body = "{\n  maintenance_windows = [{ days_of_week = [\"Friday\"], start_time = \"01:00\", duration = \"4h\" }]\n"
	w.Write(t, "main.tf", acctest.Requirement+`
provider "osupgrade" {}
provider "osupgrade" {
  alias = "other"
}
resource "osupgrade_config" "one" `+body+`}
resource "osupgrade_config" "two" `+body+`  provider = osupgrade.other
  depends_on = [osupgrade_config.one]
}
`)
	out := words(w.Run(t, 0, "apply", "-auto-approve", "-no-color"))
	if !strings.Contains(out, "has maintenance_windows already") || !strings.Contains(out, "such as one with an identical block or with another alias of the provider") {
		t.Errorf("the apply does not name the case: %s", out)
	}
	if got, _, _ := api.Config(acctest.Tenant); len(got.MaintenanceWindows) != 1 {
		t.Errorf("the server has %+v", got)
	}
}
