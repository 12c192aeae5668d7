# These write to the site and the tenant that OSUPGRADE_ENDPOINT, OSUPGRADE_TOKEN and
# OSUPGRADE_TENANT name, and destroy at the end what they wrote. Take a tenant for tests.

variables {
  windows = {
    friday = { days_of_week = ["Friday"], start_time = "22:00", duration = "4h", timezone = "UTC" }
  }
}

run "the_site_takes_it" {
  assert {
    condition = [
      for span in provider::osupgrade::next_windows(output.maintenance_windows, {}, "2026-12-18T00:00:00Z", 1) : span.start
    ] == ["2026-12-18T22:00:00Z"]
    error_message = "Want a window on Friday at 22:00."
  }
}

run "another_spelling_is_no_change" {
  command = plan
  variables {
    windows = {
      friday = { days_of_week = ["friday"], start_time = "22:00", duration = "240m", timezone = "UTC" }
    }
  }

  assert {
    condition     = output.maintenance_windows[0].duration == "4h"
    error_message = "Want the window as it is: 240m is 4h."
  }
}
