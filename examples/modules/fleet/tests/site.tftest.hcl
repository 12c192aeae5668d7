# These write to the site and the tenant that OSUPGRADE_ENDPOINT, OSUPGRADE_TOKEN and
# OSUPGRADE_TENANT name, and destroy at the end what they wrote. Take a tenant for tests.

variables {
  worker_applications = ["appliance"]
  maintenance_windows = [{ days_of_week = ["Friday"], start_time = "22:00", duration = "4h", timezone = "UTC" }]
  freezes = {
    christmas = { events = [{ start = "2026-12-20", end = "2027-01-07", all_day = true, timezone = "UTC" }] }
  }
  canary = { labels = { ring = "0" } }
}

run "the_site_takes_it" {
  assert {
    condition     = join(" ", output.stages) == "canary rest"
    error_message = "Want the stages canary and rest, not ${join(" ", output.stages)}."
  }
}

run "the_freeze_closes_the_windows_around_christmas" {
  command = plan

  assert {
    condition = join(" ", [
      for span in provider::osupgrade::next_windows(output.maintenance_windows, output.calendars, "2026-12-18T00:00:00Z", 2) : span.start
    ]) == "2026-12-18T22:00:00Z 2027-01-08T22:00:00Z"
    error_message = "Want no window between 18 December and 8 January."
  }
}
