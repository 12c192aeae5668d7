# Many tenants from one map. The token has to be valid for each of them, as one of
# osupgrade-agent credentials token --tenant '*' is.

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
}

locals {
  defaults = {
    days     = ["Tuesday", "Wednesday", "Thursday"]
    start    = "01:00"
    duration = "3h"
    canary   = { labels = { ring = "0" }, soak = "1h" }
  }

  # What differs from the defaults.
  tenants = {
    stores-north = { timezone = "Europe/Stockholm" }
    stores-south = { timezone = "Europe/Madrid", start = "03:30" }
    warehouse    = { timezone = "UTC", days = ["Sunday"], duration = "6h", canary = null }
  }

  freezes = {
    year-end = {
      description = "The shops are busy."
      events      = [{ start = "2026-12-20", end = "2027-01-07", all_day = true, rrule = "FREQ=YEARLY" }]
    }
  }
}

module "fleet" {
  source   = "../fleet"
  for_each = local.tenants

  tenant              = each.key
  worker_applications = ["appliance"]
  freezes             = local.freezes
  canary              = try(each.value.canary, local.defaults.canary)

  maintenance_windows = [{
    days_of_week = try(each.value.days, local.defaults.days)
    start_time   = try(each.value.start, local.defaults.start)
    duration     = try(each.value.duration, local.defaults.duration)
    timezone     = each.value.timezone
  }]
}

output "windows" {
  value = { for tenant, fleet in module.fleet : tenant => fleet.maintenance_windows }
}
