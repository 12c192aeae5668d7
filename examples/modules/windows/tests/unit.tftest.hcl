# These need no server: terraform test -filter=tests/unit.tftest.hcl

mock_provider "osupgrade" {}

run "each_window_is_a_resource" {
  command = plan
  variables {
    windows = {
      nights = { days_of_week = ["Monday", "Tuesday"], start_time = "22:00", duration = "4h" }
      sunday = { days_of_week = ["Sunday"], start_time = "06:00", duration = "12h", timezone = "UTC" }
    }
  }

  assert {
    condition     = length(osupgrade_maintenance_window.this) == 2 && osupgrade_maintenance_window.this["sunday"].timezone == "UTC"
    error_message = "Want two windows, that of Sunday in UTC."
  }
  assert {
    condition     = osupgrade_maintenance_window.this["nights"].timezone == "site-local"
    error_message = "A window without a time zone is site-local."
  }
}

run "two_names_for_one_window_are_refused" {
  command = plan
  variables {
    windows = {
      nights = { days_of_week = ["Monday", "Tuesday"], start_time = "22:00", duration = "4h" }
      again  = { days_of_week = ["Tuesday", "Monday"], start_time = "22:00", duration = "4h" }
    }
  }
  expect_failures = [var.windows]
}
