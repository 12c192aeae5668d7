terraform {
  required_providers {
    osupgrade = {
      source  = "osupgrade/osupgrade"
      version = "~> 0.1"
    }
  }
}

# The token comes from the environment variable OSUPGRADE_TOKEN.
provider "osupgrade" {
  endpoint = "http://127.0.0.1:4646"
  tenant   = "acme"
}
