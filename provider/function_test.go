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

// TestParseICS_isWhatACalendarTakes: the events of a text are those of a calendar, which
// then opens when the text itself does, and plans no difference.
func TestParseICS_isWhatACalendarTakes(t *testing.T) {
	t.Parallel()
	_, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+`
locals {
  text = join("\r\n", ["BEGIN:VCALENDAR",
    "BEGIN:VEVENT", "UID:a", "SUMMARY:Nights", "DTSTART;TZID=Europe/Stockholm:20270105T220000", "DURATION:PT4H", "RRULE:FREQ=WEEKLY", "EXDATE:20270112T210000Z", "END:VEVENT",
    "BEGIN:VEVENT", "UID:a", "SUMMARY:Moved", "RECURRENCE-ID:20270119T210000Z", "DTSTART:20270120T100000Z", "DTEND:20270120T110000Z", "END:VEVENT",
    "BEGIN:VEVENT", "SUMMARY:Whole days", "DTSTART;VALUE=DATE:20270201", "DTEND;VALUE=DATE:20270203", "END:VEVENT",
    "END:VCALENDAR"])
  spans = { for name, calendar in { fields = { kind = "allow", events = provider::osupgrade::parse_ics(local.text).events }, text = { kind = "allow", ics = local.text } } :
    name => [for span in provider::osupgrade::next_windows([], { c = calendar }, "2027-01-01T00:00:00Z", 9) : "${span.start} ${span.length}"] }
}
resource "osupgrade_calendar" "c" {
  name   = "c"
  kind   = "allow"
  events = provider::osupgrade::parse_ics(local.text).events
}
output "same" {
  value = local.spans.fields == local.spans.text ? "the same ${length(local.spans.text)}" : jsonencode(local.spans)
}
`)
	if out := w.Run(t, 0, "apply", "-auto-approve", "-no-color"); !strings.Contains(out, "the same 9") {
		t.Errorf("the events do not open when the text does: %s", out)
	}
	w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
	w.Write(t, "bad.ics", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:tomorrow\n")
	w.Input = `provider::osupgrade::parse_ics(file("bad.ics"))`
	if out := w.Run(t, 1, "console", "-no-color"); !strings.Contains(strings.Join(strings.Fields(out), " "), "the text ends within VEVENT") {
		t.Errorf("the console prints %s", out)
	}
}

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
