# What make demo applies: one maintenance window for three simulated hosts, and
# what came of it read back.

terraform {
  required_providers {
    osupgrade = {
      source = "osupgrade/osupgrade"
    }
  }
}

# Endpoint, token and tenant come from OSUPGRADE_* variables.
provider "osupgrade" {}

variable "start_time" {
  description = "When the window opens, HH:MM in UTC."
  type        = string
}

resource "osupgrade_config" "demo" {
  worker_applications = ["os-upgrade-simulated"]

  maintenance_windows = [
    {
      days_of_week = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
      start_time   = var.start_time
      timezone     = "UTC"
      duration     = "1h"
    },
  ]
}

# These refer to no resource, so that Terraform reads them in every plan, also
# in one that changes the resource.
data "osupgrade_state" "demo" {}

data "osupgrade_hosts" "demo" {}

output "last_run" {
  description = "How the last run ended."
  value       = try(data.osupgrade_state.demo.last_upgrade_info.result, "none yet")
}

output "versions" {
  description = "What runs on each host."
  value       = { for h in data.osupgrade_hosts.demo.hosts : h.hostname => h.versions }
}
