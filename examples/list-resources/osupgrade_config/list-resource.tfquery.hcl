# The configurations of several tenants, with a token for all of them.
list "osupgrade_config" "all" {
  for_each = toset(["acme", "globex"])
  provider = osupgrade

  config {
    tenant = each.value
  }
}
