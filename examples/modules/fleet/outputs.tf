# No output depends on the time: an output that moves makes the exit code of
# terraform plan -detailed-exitcode 2, although nothing has changed.

output "tenant" {
  description = "The tenant; null if it is that of the provider."
  value       = osupgrade_config.this.tenant
}

output "maintenance_windows" {
  description = "The windows, for the functions next_windows and in_window."
  value       = osupgrade_config.this.maintenance_windows
}

output "calendars" {
  description = "The freezes by name, for the functions next_windows and in_window. Those with a url are left out, because Terraform does not know their events."
  value       = { for name, freeze in osupgrade_calendar.freeze : name => { kind = freeze.kind, events = freeze.events, ics = freeze.ics } if freeze.url == null }
}

output "stages" {
  description = "The names of the stages, in their order."
  value       = osupgrade_rollout.this.stages[*].name
}
