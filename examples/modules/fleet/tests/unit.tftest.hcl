# These need no server: terraform test -filter=tests/unit.tftest.hcl

mock_provider "osupgrade" {}

variables {
  worker_applications = ["appliance"]
  maintenance_windows = [{ days_of_week = ["Friday"], start_time = "22:00", duration = "4h" }]
}

run "without_canary_there_is_one_stage" {
  command = plan

  assert {
    condition     = length(osupgrade_rollout.this.stages) == 1 && osupgrade_rollout.this.stages[0].name == "rest"
    error_message = "Want the stage rest alone."
  }
}

run "the_canary_goes_first_and_soaks" {
  command = plan
  variables {
    canary = { labels = { ring = "0" } }
  }

  assert {
    condition     = osupgrade_rollout.this.stages[0].name == "canary" && osupgrade_rollout.this.stages[0].soak == "30m"
    error_message = "Want the canary stage first, with a soak of 30m."
  }
  assert {
    condition     = osupgrade_rollout.this.stages[1].match == null
    error_message = "The last stage takes all hosts that remain."
  }
}

run "a_canary_without_hosts_is_refused" {
  command = plan
  variables {
    canary = { soak = "1h" }
  }
  expect_failures = [var.canary]
}

run "a_freeze_has_events_ics_or_url" {
  command = plan
  variables {
    freezes = { christmas = {} }
  }
  expect_failures = [var.freezes]
}

run "a_freeze_has_only_one_of_them" {
  command = plan
  variables {
    freezes = { christmas = { ics = "BEGIN:VCALENDAR", url = "https://calendars.example/christmas.ics" } }
  }
  expect_failures = [var.freezes]
}

run "a_freeze_may_be_fetched" {
  command = plan
  variables {
    freezes = { christmas = { url = "https://calendars.example/christmas.ics", refresh = "6h" } }
  }

  assert {
    condition     = osupgrade_calendar.freeze["christmas"].url == "https://calendars.example/christmas.ics" && osupgrade_calendar.freeze["christmas"].refresh == "6h"
    error_message = "Want the address and how often it is fetched."
  }
  assert {
    condition     = length(output.calendars) == 0
    error_message = "The functions cannot read the events of a calendar with a url."
  }
}

run "no_application_is_refused" {
  command = plan
  variables {
    worker_applications = []
  }
  expect_failures = [var.worker_applications]
}
