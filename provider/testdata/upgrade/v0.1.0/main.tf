resource "osupgrade_config" "acme" {
  worker_applications = ["appliance"]
  maintenance_windows = [
    { days_of_week = ["Saturday", "Friday"], start_time = "01:00", timezone = "Europe/Stockholm", duration = "240m" },
    { days_of_week = ["Sunday"], start_time = "22:30", duration = "1d4h" },
  ]
  timeouts   = { read = "1m" }
  depends_on = [osupgrade_calendar.christmas, osupgrade_rollout.acme]
}

# It manages one list of two.
resource "osupgrade_config" "other" {
  tenant              = "other"
  worker_applications = ["appliance"]
}

resource "osupgrade_calendar" "christmas" {
  name        = "christmas"
  kind        = "freeze"
  description = "The shops are busy."
  events = [{
    summary = "Christmas", start = "2026-12-20", end = "2027-01-07", all_day = true, rrule = "FREQ=YEARLY", exdate = ["2029-12-20"],
  }]
}

resource "osupgrade_calendar" "audit" {
  name = "audit"
  kind = "allow"
  ics  = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:test\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:20270101T010000Z\r\nDURATION:PT4H\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
}

resource "osupgrade_rollout" "acme" {
  stages = [
    { name = "canary", match = { labels = { ring = "0" }, roles = ["test"] }, soak = "1800s", approval = true },
    { name = "rest", max_unavailable = "10%" },
  ]
  max_failures     = 2
  on_failure       = "pause"
  reserve          = "10m"
  exempt           = { hosts = ["h09"] }
  command_timeouts = { reboot = "20m" }
  checks = {
    before_host = [{ type = "load", max_load = 150 }]
    after_host  = [{ type = "http", url = "http://127.0.0.1:8080/healthz", passes = 3 }, { type = "units", ignore = ["motd-news.service"] }]
  }
  hooks = {
    drain   = { type = "http", url = "https://lb.example.com/hosts/{host}/drain" }
    undrain = { type = "exec", script = "undrain", args = ["now"], on = "site" }
  }
}

resource "osupgrade_run" "acme" {
  triggers        = { release = "2026-11" }
  override_window = true
  reason          = "Release 2026-11"
  accept          = ["completed", "partial"]
  depends_on      = [osupgrade_config.acme, osupgrade_rollout.acme]
}
