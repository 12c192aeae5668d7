# The configuration of make demo: a maintenance window for three simulated hosts,
# and the result of the last run.

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

# The data sources refer to no resource, so Terraform reads them in every plan, also
# in a plan that changes the resource.
data "osupgrade_state" "demo" {}

data "osupgrade_hosts" "demo" {}

output "last_run" {
  description = "The result of the last run."
  value       = try(data.osupgrade_state.demo.last_upgrade_info.result, "none yet")
}

output "versions" {
  description = "The versions of each host's packages."
  value       = { for h in data.osupgrade_hosts.demo.hosts : h.hostname => h.versions }
}
