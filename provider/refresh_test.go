package provider_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// TestPlanWithoutRefresh: a plan with -refresh=false has the server validate what changes, finds
// conflicts and warns, as any other plan does.
func TestPlanWithoutRefresh(t *testing.T) {
	t.Parallel()
	windows := func(start string) string {
		return acctest.Requirement + "resource \"osupgrade_config\" \"a\" {\n maintenance_windows = [{ days_of_week = [\"" + oneDay + "\"], start_time = \"" + start + "\", duration = \"4h\" }]\n}\n"
	}
	for name, row := range map[string]struct {
		meanwhile func(api *fakeapi.Server)
		code      int
		want      string
	}{
		"what the server would not accept": {func(api *fakeapi.Server) {
			api.Inject(http.MethodPut, "/os-upgrade", fakeapi.Status(http.StatusBadRequest, "not in this zone"))
		}, 1, "not in this zone"},
		"a conflict": {func(api *fakeapi.Server) {
			api.SetConfig(acctest.Tenant, v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: oneDay, StartTime: "05:00", Duration: "1h"}}})
		}, 1, "Somebody else changed maintenance_windows"},
		"what nobody minds": {func(api *fakeapi.Server) {
			api.SetConfig(acctest.Tenant, v1.OSUpgrade{
				WorkerApplications: []v1.WorkerApplication{{Name: "x"}},
				MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: oneDay, StartTime: "01:00", Duration: "4h", Timezone: "UTC"}},
			})
		}, 0, "1 to change"},
		"a warning": {func(api *fakeapi.Server) {
			freeze := v1.Event{Start: time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly), Duration: "300d", AllDay: true}
			api.SetCalendar(acctest.Tenant, "audit", v1.Calendar{Kind: "freeze", Events: []v1.Event{freeze}})
		}, 0, "The next window is frozen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			w := acctest.NewWorkspace(t, server.Env()...)
			w.Write(t, "main.tf", strings.ReplaceAll(windows("01:00"), `"4h" }`, `"4h", timezone = "UTC" }`))
			w.Run(t, 0, "apply", "-auto-approve", "-no-color")
			row.meanwhile(api)
			w.Write(t, "main.tf", strings.ReplaceAll(windows("02:00"), `"4h" }`, `"4h", timezone = "UTC" }`))
			if out := words(w.Run(t, row.code, "plan", "-refresh=false", "-input=false", "-no-color")); !strings.Contains(out, row.want) {
				t.Errorf("the plan does not say %q: %s", row.want, out)
			}
		})
	}
}

// TestUnknownProvider_isOneError: a data source that cannot be read because the provider is not
// known yet says that once, and nothing of the tenant.
func TestUnknownProvider_isOneError(t *testing.T) {
	t.Parallel()
	w := acctest.NewWorkspace(t)
	w.Write(t, "main.tf", acctest.Requirement+`
resource "terraform_data" "later" { input = "acme" }
provider "osupgrade" {
  endpoint = terraform_data.later.output
  token    = "t"
}
data "osupgrade_hosts" "a" {}
`)
	out := words(w.Run(t, 1, "plan", "-input=false", "-no-color"))
	if n := strings.Count(out, "Error: "); n != 1 || !strings.Contains(out, "not known yet: endpoint") {
		t.Errorf("the plan has %d errors, want one that names the endpoint: %s", n, out)
	}
}
