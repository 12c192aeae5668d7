# One tenant, several owners: who runs the platform owns the applications, the rollout and the
# freezes; each team owns its windows, here in a module each. A team may as well have a
# state of its own: any number of states may write windows of a tenant at once.

terraform {
  # OpenTofu compares this with its own version.
  required_version = ">= 1.10"

  required_providers {
    osupgrade = {
      source  = "osupgrade/osupgrade"
      version = "~> 0.1"
    }
  }
}

provider "osupgrade" {
  endpoint = "http://127.0.0.1:4646" # The token is in OSUPGRADE_TOKEN.
  tenant   = "plant"
}

# It manages the applications alone. With maintenance_windows it would own all windows, and
# the plan would refuse those of the teams.
resource "osupgrade_config" "platform" {
  worker_applications = ["appliance"]

  depends_on = [osupgrade_calendar.stocktaking, osupgrade_rollout.platform]
}

resource "osupgrade_rollout" "platform" {
  stages = [{ name = "rest", max_unavailable = "10%" }]
}

resource "osupgrade_calendar" "stocktaking" {
  name   = "stocktaking"
  kind   = "freeze"
  events = [{ start = "2027-01-30", duration = "2d", all_day = true, rrule = "FREQ=YEARLY" }]
}

# A window may be open now: its run goes by the applications, the rollout and the freezes
# that exist when it is written. Destroy goes the other way round.
module "stores" {
  source = "../windows"
  windows = {
    nights = { days_of_week = ["Monday", "Tuesday", "Wednesday", "Thursday"], start_time = "22:00", duration = "4h" }
  }

  depends_on = [osupgrade_config.platform]
}

module "warehouse" {
  source = "../windows"
  windows = {
    saturday = { days_of_week = ["Saturday"], start_time = "14:00", duration = "8h" }
    sunday   = { days_of_week = ["Sunday"], start_time = "06:00", duration = "12h" }
  }

  depends_on = [osupgrade_config.platform]
}

output "maintenance_windows" {
  description = "The windows of all teams of this state."
  value       = concat(module.stores.maintenance_windows, module.warehouse.maintenance_windows)
}
