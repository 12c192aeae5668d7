locals {
  maintenance = [{ days_of_week = ["Friday"], start_time = "22:00", duration = "4h" }]
}

# Every plan and apply warns while hosts may be upgraded. The last argument is the
# site's time zone, which replaces site-local.
check "no_maintenance_now" {
  assert {
    condition     = !provider::osupgrade::in_window(local.maintenance, [], plantimestamp(), "Europe/Stockholm")
    error_message = "The hosts may be upgraded right now."
  }
}
