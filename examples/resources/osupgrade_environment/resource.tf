resource "osupgrade_environment" "basel" {
  tenant      = "acme"
  name        = "basel"
  description = "Shop in Basel"
  match       = { labels = { shop = "basel" } }

  maintenance_windows = [
    {
      days_of_week = ["Monday", "Tuesday"]
      start_time   = "02:00"
      timezone     = "Europe/Zurich"
      duration     = "3h"
    },
  ]

  rollout = {
    stages = [{ name = "all", max_unavailable = "1" }]
  }
}
