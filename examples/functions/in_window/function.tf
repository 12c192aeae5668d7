locals {
  maintenance = [{ days_of_week = ["Friday"], start_time = "22:00", duration = "4h" }]
}

# A warning of every plan and apply that is made while hosts may be upgraded.
# The last argument is the site's zone, for what is site-local.
check "no_maintenance_now" {
  assert {
    condition     = !provider::osupgrade::in_window(local.maintenance, [], plantimestamp(), "Europe/Stockholm")
    error_message = "The hosts may be upgraded right now."
  }
}
