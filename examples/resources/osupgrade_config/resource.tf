resource "osupgrade_config" "acme" {
  worker_applications = ["os-upgrade-simulated"]

  maintenance_windows = [
    {
      days_of_week = ["Friday", "Saturday"]
      start_time   = "01:00"
      duration     = "4h"
    },
    {
      days_of_week = ["Sunday"]
      start_time   = "22:30"
      timezone     = "Europe/Stockholm"
      duration     = "2h"
    },
  ]

  # A window may be open now: no run starts before its freezes exist.
  depends_on = [osupgrade_calendar.year_end]
}

resource "osupgrade_calendar" "year_end" {
  name   = "year-end"
  kind   = "freeze"
  events = [{ start = "2026-12-28", end = "2027-01-03", all_day = true, rrule = "FREQ=YEARLY" }]
}
