data "osupgrade_health" "platform" {}

check "platform_is_healthy" {
  assert {
    condition     = data.osupgrade_health.platform.ok
    error_message = join("\n", [for c in data.osupgrade_health.platform.checks : "${c.name}: ${c.text}" if c.result == "failed"])
  }
}
