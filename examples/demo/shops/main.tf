# The configuration of the demo with --shops: six shops in three time zones, an environment each.
# Their runs go side by side, and in no shop is more than one host out of service at once.

terraform {
  required_providers {
    osupgrade = {
      source = "osupgrade/osupgrade"
    }
  }
}

# Endpoint, token and tenant come from OSUPGRADE_* variables.
provider "osupgrade" {}

variable "shops" {
  description = "The time zone of each shop, by the value of the label shop of its hosts."
  type        = map(string)
  default = {
    athens = "Europe/Athens"
    basel  = "Europe/Zurich"
    bern   = "Europe/Zurich"
    lisbon = "Europe/Lisbon"
    patras = "Europe/Athens"
    porto  = "Europe/Lisbon"
  }
}

variable "start_times" {
  description = "When the windows of each time zone open, HH:MM in that zone."
  type        = map(string)
}

resource "osupgrade_environment" "shop" {
  for_each = var.shops

  name        = each.key
  description = "Shop ${each.key}"
  match       = { labels = { shop = each.key } }

  maintenance_windows = [{
    days_of_week = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    start_time   = var.start_times[each.value]
    timezone     = each.value
    duration     = "1h"
  }]

  # The rollout, which all shops share, and the budget count from the first run on.
  depends_on = [osupgrade_rollout.all, osupgrade_disruption_budget.shops]
}

# One host of each shop may be out of service, whatever the rollout allows.
resource "osupgrade_disruption_budget" "shops" {
  name            = "shops"
  per             = "shop"
  max_unavailable = "1"
}

# Short times, so that the demo does not wait long for a host that never answers.
resource "osupgrade_rollout" "all" {
  stages           = [{ name = "all", max_unavailable = "100%" }]
  prepare_patience = "5s"
  command_timeouts = { upgrade = "15s" }
}

# The tenant has no windows, so only the shops are upgraded.
resource "osupgrade_config" "all" {
  worker_applications = ["os-upgrade-simulated"]
  maintenance_windows = []

  depends_on = [osupgrade_rollout.all]
}
