data "osupgrade_state" "acme" {}

output "next_upgrade_at" {
  value = data.osupgrade_state.acme.next_upgrade_at
}

output "last_result" {
  value = try(data.osupgrade_state.acme.last_upgrade_info.result, "none yet")
}
