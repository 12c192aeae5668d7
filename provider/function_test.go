package provider_test

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

const functionsConfig = `
resource "osupgrade_config" "acme" {
  tenant              = "acme"
  maintenance_windows = [{ days_of_week = ["Friday"], start_time = "22:00", duration = "240m", timezone = "UTC" }]
}

resource "osupgrade_calendar" "christmas" {
  tenant = "acme"
  name   = "christmas"
  kind   = "freeze"
  events = [{ start = "2026-12-20", end = "2027-01-07", all_day = true }]
}

locals {
  next = provider::osupgrade::next_windows(osupgrade_config.acme.maintenance_windows, [osupgrade_calendar.christmas], "2026-12-18T23:00:00Z", 2)
}
`

// functionsChecks are conditions that hold whatever runs them.
const functionsChecks = `
    condition = (
      provider::osupgrade::normalize_duration(tolist(osupgrade_config.acme.maintenance_windows)[0].duration) == "4h"
      && join(" ", local.next[*].start) == "2026-12-18T22:00:00Z 2027-01-08T22:00:00Z"
      && local.next[0].sources[0].window == 0 && local.next[0].sources[0].calendar == null
      && !provider::osupgrade::in_window(osupgrade_config.acme.maintenance_windows, { christmas = osupgrade_calendar.christmas }, "2026-12-25T23:00:00Z")
      && provider::osupgrade::in_window(osupgrade_config.acme.maintenance_windows, null, "2026-12-25T23:00:00Z", "Asia/Tokyo")
    )
    error_message = "next: ${jsonencode(local.next)}"
`

// TestFunctions_runEverywhere: in console, in a check block and in terraform
// test, without a server and without a configuration of the provider.
func TestFunctions_runEverywhere(t *testing.T) {
	t.Parallel()
	w := acctest.NewWorkspace(t)
	w.Write(t, "main.tf", acctest.Requirement+functionsConfig+"check \"windows\" {\n  assert {"+functionsChecks+"  }\n}\n")
	w.Write(t, "windows.tftest.hcl", "mock_provider \"osupgrade\" {}\nrun \"windows\" {\n  command = plan\n  assert {"+functionsChecks+"  }\n}\n")
	w.Input = `provider::osupgrade::normalize_duration("28h18s")`
	if out := w.Run(t, 0, "console", "-no-color"); !strings.Contains(out, `"1d4h18s"`) {
		t.Errorf("the console prints %s", out)
	}
	w.Input = `provider::osupgrade::in_window([{ days_of_week = ["Frday"] }], [], "2026-12-25T23:00:00Z")`
	if out := w.Run(t, 1, "console", "-no-color"); !strings.Contains(strings.Join(strings.Fields(out), " "), `windows[0].days_of_week: "Frday" is not a day; did you mean`) {
		t.Errorf("the console prints %s", out)
	}
	if out := w.Run(t, 0, "test", "-no-color"); !strings.Contains(out, "1 passed") || strings.Contains(out, "Check block assertion failed") {
		t.Errorf("terraform test prints %s", out)
	}
}
