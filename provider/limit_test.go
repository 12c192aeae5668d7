package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// limited is a kind of which a tenant may have a limited number.
type limited struct {
	most int
	// warning is what a plan says of one too many; windows are not looked at one by one.
	warning string
	// resource is a resource whose names are those of each.key, foreign makes one object that no
	// resource manages, and there reports whether the tenant has one of a name.
	resource string
	foreign  func(api *fakeapi.Server, name string)
	there    func(api *fakeapi.Server, name string) bool
}

var limits = map[string]limited{
	"calendars": {
		most:    v1.MaxCalendars,
		warning: "There is no room for another calendar",
		resource: `
resource "osupgrade_calendar" "many" {
  for_each = toset(local.names)
  name     = each.key
  kind     = "allow"
  events   = [{ start = "2099-01-01T00:00", duration = "1h" }]
}
`,
		foreign: func(api *fakeapi.Server, name string) {
			api.SetCalendar(acctest.Tenant, name, v1.Calendar{Kind: "allow", Events: []v1.Event{{Start: "2099-01-01T00:00", Duration: "1h"}}})
		},
		there: func(api *fakeapi.Server, name string) bool {
			_, _, ok := api.Calendar(acctest.Tenant, name)
			return ok
		},
	},
	"webhooks": {
		most:    v1.MaxWebhooks,
		warning: "There is no room for another webhook",
		resource: `
resource "osupgrade_webhook" "many" {
  for_each          = toset(local.names)
  name              = each.key
  url               = "https://receiver.example/"
  secret_wo         = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"
  secret_wo_version = 1
}
`,
		foreign: func(api *fakeapi.Server, name string) {
			api.SetWebhook(acctest.Tenant, name, v1.Webhook{URL: "https://receiver.example/", Secret: "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"})
		},
		there: func(api *fakeapi.Server, name string) bool { return api.WebhookSecret(acctest.Tenant, name) != "" },
	},
	"windows": {
		most: v1.MaxWindows,
		resource: `
resource "osupgrade_maintenance_window" "many" {
  for_each     = toset(local.names)
  days_of_week = ["Friday"]
  start_time   = "0${substr(each.key, 1, 1)}:${substr(each.key, 2, 2)}"
  duration     = "1h"
}
`,
		foreign: func(api *fakeapi.Server, name string) {
			api.EditConfig(acctest.Tenant, func(c *v1.OSUpgrade) {
				c.MaintenanceWindows = append(c.MaintenanceWindows, windowOf(name))
			})
		},
		there: func(api *fakeapi.Server, name string) bool {
			c, _, _ := api.Config(acctest.Tenant)
			for _, w := range c.MaintenanceWindows {
				if strings.HasPrefix(w.StartTime, windowOf(name).StartTime) {
					return true
				}
			}
			return false
		},
	},
}

// windowOf returns the window that stands for a name such as n042.
func windowOf(name string) v1.MaintenanceWindow {
	return v1.MaintenanceWindow{DaysOfWeek: "Friday", StartTime: "0" + name[1:2] + ":" + name[2:4], Duration: "1h", Timezone: "site-local"}
}

// fullSite is a workspace of resources of a kind at a server on which foreign objects leave
// room for only some.
type fullSite struct {
	limited
	api *fakeapi.Server
	*acctest.Workspace
}

func newFullSite(t *testing.T, of limited, room int) fullSite {
	t.Helper()
	api, server := acctest.Fake(t)
	api.SetConfig(acctest.Tenant, v1.OSUpgrade{})
	s := fullSite{of, api, acctest.NewWorkspace(t, server.Env()...)}
	for _, name := range names(500, of.most-room) {
		of.foreign(api, name)
	}
	return s
}

// names returns names of objects, from a number on. Each stands for a window, too.
func names(from, count int) []string {
	var list []string
	for i := range count {
		n := from + i
		list = append(list, fmt.Sprintf("n%d%02d", n/60, n%60))
	}
	return list
}

// local declares the names of a configuration.
func local(names []string) string {
	return `locals { names = ["` + strings.Join(names, `", "`) + "\"] }\n"
}

// declare writes a configuration with objects of these names.
func (s fullSite) declare(t *testing.T, names ...string) {
	t.Helper()
	s.Write(t, "main.tf", acctest.Requirement+local(names)+s.resource)
}

// has compares which of some objects are there.
func (s fullSite) has(t *testing.T, want bool, names ...string) {
	t.Helper()
	for _, name := range names {
		if s.there(s.api, name) != want {
			t.Errorf("that there is %s is %t, want %t", name, !want, want)
		}
	}
}

// forEachLimit runs a test for each kind of objects.
func forEachLimit(t *testing.T, test func(t *testing.T, of limited)) {
	t.Helper()
	for name, of := range limits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, of)
		})
	}
}

// TestLimit_destroy: an apply that met the limit half way can be destroyed. Terraform plans
// what is missing before it plans the deletions.
func TestLimit_destroy(t *testing.T) {
	t.Parallel()
	forEachLimit(t, func(t *testing.T, of limited) {
		s := newFullSite(t, of, 3)
		declared := names(0, 6)
		s.declare(t, declared...)
		s.Run(t, 1, "apply", "-auto-approve", "-input=false", "-no-color")
		if out := words(s.Run(t, 0, "plan", "-input=false", "-no-color")); !strings.Contains(out, "3 to add") || !strings.Contains(out, of.warning) {
			t.Errorf("the plan of what is missing says: %s", out)
		}
		s.Run(t, 0, "destroy", "-auto-approve", "-input=false", "-no-color")
		s.has(t, false, declared...)
		s.has(t, true, names(500, of.most-3)...)
	})
}

// TestLimit_replace: an object is replaced, renamed or exchanged for another by one apply
// though there is no room for one more.
func TestLimit_replace(t *testing.T) {
	t.Parallel()
	forEachLimit(t, func(t *testing.T, of limited) {
		s := newFullSite(t, of, 3)
		declared := names(0, 3)
		s.declare(t, declared...)
		apply := func(args ...string) {
			t.Helper()
			s.Run(t, 0, append([]string{"apply", "-auto-approve", "-input=false", "-no-color"}, args...)...)
			s.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
		}
		apply()
		address := strings.Fields(strings.ReplaceAll(of.resource, `"`, ""))[1] + `.many["` + declared[0] + `"]`
		apply("-replace=" + address)
		apply("-replace="+address, "-refresh=false")
		moved := append(names(10, 1), declared[1:]...)
		s.declare(t, moved...)
		apply() // One is deleted, and another one created.
		s.has(t, true, moved...)
		s.has(t, false, declared[0])
		s.Write(t, "main.tf", acctest.Requirement+local(moved)+
			strings.NewReplacer("each.key", `(each.key == "`+moved[0]+`" ? "`+declared[0]+`" : each.key)`).Replace(of.resource))
		apply() // The resource stays, and its object gets another name.
		s.has(t, true, declared...)
		s.has(t, false, moved[0])
	})
}
