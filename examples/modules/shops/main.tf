# Sixty shops of one tenant from one map: an environment each, with its zone and its nights. Their
# runs go side by side, and in no shop is more than one host out of service at once.
#
# The hosts of a shop have the label shop: osupgrade-agent worker --label shop=basel.

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

variable "shops" {
  description = "The shops by the value of the label shop: their time zone, and the nights on which they may be upgraded."
  type = map(object({
    zone   = string
    nights = optional(set(string), ["Monday", "Tuesday", "Wednesday"])
  }))
  default = {
    basel  = { zone = "Europe/Zurich" }
    bern   = { zone = "Europe/Zurich", nights = ["Sunday"] }
    lisbon = { zone = "Europe/Lisbon" }
  }
}

resource "osupgrade_environment" "shop" {
  for_each = var.shops

  name        = each.key
  description = "Shop ${each.key}"
  match       = { labels = { shop = each.key } }

  maintenance_windows = [{
    days_of_week = each.value.nights
    start_time   = "02:00"
    timezone     = each.value.zone
    duration     = "3h"
  }]

  # A shop that leaves the map, and destroy, take the environment away although it has hosts. They
  # are in no shop then, and no run upgrades them. Without this, the server refuses, so that you move
  # the hosts to other shops first.
  force_destroy = true

  # The rollout, which all shops share, and the budget must exist before the first run.
  depends_on = [osupgrade_rollout.all, osupgrade_disruption_budget.shops]
}

# At most one host of each shop may be out of service, whatever the rollout allows.
resource "osupgrade_disruption_budget" "shops" {
  name            = "shops"
  per             = "shop"
  max_unavailable = "1"
}

resource "osupgrade_rollout" "all" {
  stages       = [{ name = "all", max_unavailable = "100%" }]
  max_failures = "1"
}

# The tenant has no windows, so no window upgrades a host that has lost its label and is in no shop.
resource "osupgrade_config" "all" {
  worker_applications = ["appliance"]
  maintenance_windows = []

  depends_on = [osupgrade_rollout.all]
}

data "osupgrade_state" "all" {
  depends_on = [osupgrade_environment.shop]
}

check "each_shop_has_hosts" {
  assert {
    condition     = alltrue([for shop in data.osupgrade_state.all.environments : shop.hosts > 0 || !contains(keys(var.shops), shop.name)])
    error_message = "Shops without hosts: ${join(", ", [for shop in data.osupgrade_state.all.environments : shop.name if shop.hosts == 0 && contains(keys(var.shops), shop.name)])}."
  }
}
