# Rules that every plan and apply checks. A check warns and never fails.

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

variable "site_timezone" {
  description = "The time zone of the site, which replaces site-local."
  type        = string
  default     = "Europe/Stockholm"
}

variable "maintenance_windows" {
  description = "When the hosts may be upgraded."
  type = list(object({
    days_of_week = set(string)
    start_time   = string
    duration     = string
    timezone     = optional(string, "site-local")
  }))
  default = [{ days_of_week = ["Tuesday", "Thursday"], start_time = "01:00", duration = "4h" }]
}

variable "outdated_days" {
  description = "For how many days a host may be outdated, that is, an upgrade would change something on it."
  type        = number
  default     = 14
}

resource "osupgrade_config" "acme" {
  worker_applications = ["os-upgrade-simulated"]
  maintenance_windows = var.maintenance_windows
}

# A data source inside of a check block is read again during each apply, so every plan
# would have an action, and terraform plan -detailed-exitcode would end with 2. Here it
# is read during the plan.
data "osupgrade_hosts" "acme" {}

locals {
  windows = osupgrade_config.acme.maintenance_windows

  # Two spans overlap if one of them starts within the other. Both are looked at in
  # their own time zones, for the next 12 weeks.
  business_hours = [{
    days_of_week = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
    start_time   = "08:00"
    duration     = "9h"
    timezone     = var.site_timezone
  }]
  business_spans    = provider::osupgrade::next_windows(local.business_hours, [], plantimestamp(), 60)
  maintenance_spans = provider::osupgrade::next_windows(local.windows, [], plantimestamp(), 60, var.site_timezone)
  in_business_hours = distinct(concat(
    [for span in local.maintenance_spans : span.start if provider::osupgrade::in_window(local.business_hours, [], span.start)],
    [for span in local.business_spans : span.start if provider::osupgrade::in_window(local.windows, [], span.start, var.site_timezone)],
  ))

  outdated = [
    for host in data.osupgrade_hosts.acme.hosts : host.hostname
    if host.outdated_since != null && timecmp(timeadd(coalesce(host.outdated_since, plantimestamp()), "${24 * var.outdated_days}h"), plantimestamp()) <= 0
  ]
}

check "no_window_in_business_hours" {
  assert {
    condition     = length(local.in_business_hours) == 0
    error_message = "Hosts may be upgraded in business hours, first at ${try(sort(local.in_business_hours)[0], "")}."
  }
}

check "a_window_within_seven_days" {
  assert {
    condition     = try(timecmp(local.maintenance_spans[0].start, timeadd(plantimestamp(), "168h")) <= 0, false)
    error_message = "No window opens within seven days; the next one is ${try(local.maintenance_spans[0].start, "never")}."
  }
}

check "no_host_is_outdated" {
  assert {
    condition     = length(local.outdated) == 0
    error_message = "Outdated for more than ${var.outdated_days} days: ${join(", ", local.outdated)}."
  }
}
