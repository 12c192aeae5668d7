# No output depends on the time: an output that moves makes the exit code of
# terraform plan -detailed-exitcode 2, although nothing has changed.

output "maintenance_windows" {
  description = "The windows of this module, for the functions next_windows and in_window."
  value = [for name, window in osupgrade_maintenance_window.this : {
    days_of_week = window.days_of_week
    start_time   = window.start_time
    duration     = window.duration
    timezone     = window.timezone
  }]
}
