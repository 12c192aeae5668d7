package provider_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// TestNextWindow_isToldAtPlan: a plan warns of what comes next, with one read beside the
// refresh for each resource that changes, and a plan that changes nothing does not.
func TestNextWindow_isToldAtPlan(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	// Ten months from yesterday on.
	freeze := v1.Event{Start: time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly), Duration: "300d", AllDay: true, Summary: "Audit"}
	api.SetCalendar(acctest.Tenant, "audit", v1.Calendar{Kind: "freeze", Events: []v1.Event{freeze}})
	w := acctest.NewWorkspace(t, server.Env()...)
	configuration := func(window, year string) string {
		return acctest.Requirement + `
resource "osupgrade_config" "acme" {
  maintenance_windows = [{ days_of_week = ["Friday"], start_time = "` + window + `", duration = "4h" }]
}
resource "osupgrade_calendar" "old" {
  name   = "old"
  kind   = "allow"
  events = [{ start = "` + year + `-01-01T00:00", duration = "1h" }]
}
`
	}
	w.Write(t, "main.tf", configuration("21:00", "2019"))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	api.ForgetRequests()
	w.Write(t, "main.tf", configuration("22:00", "2020"))
	told := acctest.Diagnostics(t, planned(w.Run(t, 0, "plan", "-json")))
	for address, want := range map[string]string{
		"osupgrade_config.acme":  "The next window is frozen",
		"osupgrade_calendar.old": "No event of calendar old lies ahead",
	} {
		if len(told[address]) != 1 || !strings.HasPrefix(told[address][0], want) {
			t.Errorf("%s: got %q, want %s", address, told[address], want)
		}
	}
	if n := api.Count(http.MethodGet, ""); n > 4 {
		t.Errorf("the plan made %d reads, want 4 at most", n)
	}
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	if out := w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color"); strings.Contains(out, "frozen") {
		t.Errorf("a plan without changes warns: %s", out)
	}
}

// planned returns the diagnostics of a plan in the form of validate's.
func planned(output string) string {
	var list []string
	for line := range strings.Lines(output) {
		if _, found, ok := strings.Cut(line, `"diagnostic":`); ok {
			end := strings.LastIndex(found, `,"type":"diagnostic"`)
			list = append(list, found[:end])
		}
	}
	return `{"diagnostics":[` + strings.Join(list, ",") + `]}`
}
