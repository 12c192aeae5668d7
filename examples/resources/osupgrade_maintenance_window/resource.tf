# One window of a tenant. Other configurations own other windows of it.
resource "osupgrade_maintenance_window" "weekend" {
  days_of_week = ["Friday", "Saturday"]
  start_time   = "22:30"
  timezone     = "Europe/Stockholm"
  duration     = "2h"
}
