# The maintenance windows of one team, next to those of other teams in the same tenant. No
# other module and no other state has to know of them.

resource "osupgrade_maintenance_window" "this" {
  for_each = var.windows

  tenant       = var.tenant
  days_of_week = each.value.days_of_week
  start_time   = each.value.start_time
  duration     = each.value.duration
  timezone     = each.value.timezone
}
