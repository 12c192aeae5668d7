# The configuration of the demo with --platform: two controllers, of which one is active, get a new
# release in the order of the module platform.

terraform {
  required_providers {
    osupgrade = {
      source = "osupgrade/osupgrade"
    }
  }
}

# Endpoint, token and tenant come from OSUPGRADE_* variables.
provider "osupgrade" {}

module "platform" {
  source = "../../modules/platform"

  topology     = "duplex"
  roles        = { controller = "simulated" }
  step_timeout = "30s"
}

resource "osupgrade_config" "platform" {
  worker_applications = ["os-upgrade-simulated"]

  depends_on = [osupgrade_rollout.platform]
}

# A failed step pauses the run. Until the run has ended, nobody changes the configuration under it.
resource "osupgrade_rollout" "platform" {
  stages         = module.platform.stages
  checks         = { start = module.platform.health }
  on_failure     = "pause"
  freeze_changes = true
}

data "osupgrade_health" "platform" {
  depends_on = [osupgrade_config.platform]
}

# The run waits for people, so the apply does not wait for its end.
resource "osupgrade_run" "upgrade" {
  triggers        = { release = "2" }
  override_window = true
  reason          = "Release 2"
  wait            = false

  depends_on = [osupgrade_rollout.platform]

  lifecycle {
    precondition {
      condition     = data.osupgrade_health.platform.ok
      error_message = join("\n", [for c in data.osupgrade_health.platform.checks : "${c.name}: ${c.text}" if c.result == "failed"])
    }
  }
}

output "result" {
  description = "The result of the run; null until it has ended."
  value       = osupgrade_run.upgrade.result
}
