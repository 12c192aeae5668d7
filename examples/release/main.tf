terraform {
  required_providers {
    osupgrade = {
      source  = "osupgrade/osupgrade"
      version = "~> 0.1"
    }
  }
}

provider "osupgrade" {}

variable "release" {
  description = "The release that the hosts are to have."
  default     = "october"
}

resource "osupgrade_release" "kernel" {
  for_each = { october = "6.1.10", november = "6.1.11" }

  name     = each.key
  version  = each.value
  installs = { kernel = each.value }
  data     = jsonencode({ kernel = each.value })
}

resource "osupgrade_config" "acme" {
  worker_applications = ["os-upgrade-simulated"]
  maintenance_windows = []
  releases            = { os = osupgrade_release.kernel[var.release].name }
}

# A run for each release that is named. If the hosts had that release before, it rolls back what they have.
resource "osupgrade_run" "acme" {
  release         = osupgrade_config.acme.releases["os"]
  override_window = true
  reason          = "release ${var.release}"
}

data "osupgrade_hosts" "acme" {
  depends_on = [osupgrade_run.acme]
}

output "kernels" {
  value = { for h in data.osupgrade_hosts.acme.hosts : h.hostname => h.versions["kernel"] }
}
