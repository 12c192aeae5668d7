# A token for one tenant that may only read, made by the token of an admin.
ephemeral "osupgrade_token" "reader" {
  name  = "dashboard"
  allow = ["viewer"]
}

provider "osupgrade" {
  alias    = "reader"
  endpoint = "http://127.0.0.1:4646"
  tenant   = "acme"
  token    = ephemeral.osupgrade_token.reader.token
}

data "osupgrade_hosts" "all" {
  provider = osupgrade.reader
}
