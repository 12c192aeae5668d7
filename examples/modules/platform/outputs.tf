output "stages" {
  description = "The stages, for stages of osupgrade_rollout."
  value       = [for name in local.orders[var.topology] : merge(local.steps, local.hosts)[name]]

  precondition {
    condition     = contains(local.orders[var.topology], var.point_of_no_return)
    error_message = "${var.point_of_no_return} is no stage of this topology: ${join(", ", local.orders[var.topology])}."
  }
}

output "health" {
  description = "What must be healthy before an upgrade begins, for checks.start of osupgrade_rollout."
  value       = local.health
}
