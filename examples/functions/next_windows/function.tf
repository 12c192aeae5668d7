locals {
  windows = [
    { days_of_week = ["Friday", "Saturday"], start_time = "22:00", duration = "4h", timezone = "Europe/Stockholm" },
  ]
  calendars = {
    christmas = {
      kind   = "freeze"
      events = [{ summary = "Christmas", start = "2026-12-20", end = "2027-01-07", all_day = true, timezone = "Europe/Stockholm" }]
    }
  }
}

# The next three spans, such as
# { start = "2026-12-18T21:00:00Z", end = "2026-12-19T01:00:00Z", length = "4h", ... }.
output "next_windows" {
  value = provider::osupgrade::next_windows(local.windows, local.calendars, "2026-12-18T12:00:00Z", 3)
}
