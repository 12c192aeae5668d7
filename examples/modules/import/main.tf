# Takes over a tenant that somebody has configured by hand. After the first apply the
# import blocks can be deleted.

terraform {
  required_version = ">= 1.10"

  required_providers {
    osupgrade = {
      source  = "osupgrade/osupgrade"
      version = "~> 0.1"
    }
  }
}

provider "osupgrade" {
  endpoint = "http://127.0.0.1:4646"
  tenant   = "acme"
}

import {
  to = osupgrade_config.acme
  id = "acme"
}

import {
  to = osupgrade_rollout.acme
  id = "acme"
}

# One block for all calendars: the keys are their names.
import {
  for_each = local.freezes
  to       = osupgrade_calendar.freeze[each.key]
  id       = "acme/${each.key}"
}

locals {
  freezes = {
    christmas = [{ start = "2026-12-20", end = "2027-01-07", all_day = true }]
    inventory = [{ start = "2027-02-01", duration = "2d", all_day = true }]
  }
}

resource "osupgrade_calendar" "freeze" {
  for_each = local.freezes

  name   = each.key
  kind   = "freeze"
  events = each.value
}

resource "osupgrade_rollout" "acme" {
  stages = [
    { name = "canary", match = { labels = { ring = "0" } }, soak = "30m" },
    { name = "rest", max_unavailable = "10%" },
  ]
}

resource "osupgrade_config" "acme" {
  worker_applications = ["appliance"]
  maintenance_windows = [
    { days_of_week = ["Friday", "Saturday"], start_time = "01:00", timezone = "Europe/Stockholm", duration = "4h" },
  ]

  # A window may be open now: no run starts before its freezes and its rollout exist.
  depends_on = [osupgrade_calendar.freeze, osupgrade_rollout.acme]
}
