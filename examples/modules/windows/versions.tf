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
