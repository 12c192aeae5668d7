package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// TestAgentCalendar checks that the real agent stores calendars, returns them without
// a difference, and answers the requests of the plan's warnings.
func TestAgentCalendar(t *testing.T) {
	t.Parallel()
	server, _ := realagent.Start(t, 1)
	w := acctest.NewWorkspace(t, server.Env()...)
	yesterday := time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	calendars := `
resource "osupgrade_calendar" "audit" {
  name   = "audit"
  kind   = "freeze"
  events = [{ summary = "Audit", start = "` + yesterday + `", duration = "7200h", all_day = true }]
}
resource "osupgrade_calendar" "holidays" {
  name = "holidays"
  kind = "freeze"
  ics  = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//a//b//EN\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;VALUE=DATE:20261220\r\nRRULE:FREQ=YEARLY\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
}
`
	w.Write(t, "main.tf", acctest.Requirement+calendars)
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
	fetched := `
resource "osupgrade_calendar" "fetched" {
  name = "fetched"
  kind = "allow"
  url  = "https://127.0.0.1:1/a.ics"
}
`
	// What the site fetches, or fails to, is no change of the resource, nor of its ETag.
	w.Write(t, "main.tf", acctest.Requirement+calendars+fetched)
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	for range 2 {
		w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
	}
	w.Write(t, "main.tf", acctest.Requirement+calendars+strings.Replace(fetched, "a.ics\"", "a.ics\"\n  refresh = \"2h\"", 1))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	windows := func(start string) string {
		return acctest.Requirement + calendars + `
resource "osupgrade_config" "acme" {
  maintenance_windows = [{ days_of_week = ["Friday"], start_time = "` + start + `", duration = "4h" }]
}
`
	}
	w.Write(t, "main.tf", windows("21:00"))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	w.Write(t, "main.tf", windows("22:00"))
	told := acctest.Diagnostics(t, planned(w.Run(t, 0, "plan", "-json")))["osupgrade_config.acme"]
	if len(told) != 1 || !strings.HasPrefix(told[0], "The next window is frozen") {
		t.Errorf("the plan tells %q, want that the next window is frozen", told)
	}
	w.Write(t, "main.tf", acctest.Requirement+strings.Replace(calendars, "7200h", "200h", 1))
	if out := w.Run(t, 1, "plan", "-no-color"); !strings.Contains(strings.Join(strings.Fields(out), " "), "is not a multiple of 1d") {
		t.Errorf("the plan prints %s", out)
	}
}
