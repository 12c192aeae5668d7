resource "osupgrade_config" "acme" {
  worker_applications = ["os-upgrade-simulated"]

  maintenance_windows = [
    {
      days_of_week = ["Friday", "Saturday"]
      start_time   = "01:00"
      duration     = "4h"
    },
    {
      days_of_week = ["Sunday"]
      start_time   = "22:30"
      timezone     = "Europe/Stockholm"
      duration     = "2h"
    },
  ]
}
