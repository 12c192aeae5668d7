resource "osupgrade_rollout" "platform" {
  stages = [
    {
      name = "backup"
      step = {
        do   = { type = "exec", script = "backup", on = "site", timeout = "30m" }
        undo = { type = "exec", script = "remove-backup", on = "site" }
      }
    },
    {
      name  = "standby"
      match = { roles = ["controller"], labels = { active = "false" } }
    },
    {
      name = "swact"
      step = {
        do    = { type = "exec", script = "swact", timeout = "10m" }
        undo  = { type = "exec", script = "swact", timeout = "10m" }
        match = { labels = { active = "true" } }
      }
    },
    {
      name            = "rest"
      max_unavailable = "10%"
    },
    {
      name               = "complete"
      approval           = true
      point_of_no_return = true
      step               = { do = { type = "exec", script = "complete", on = "site" } }
    },
  ]

  on_failure     = "pause"
  freeze_changes = true

  checks = {
    start = [
      { type = "hosts" },
      { type = "prometheus", url = "http://prometheus:9090", query = "ALERTS{severity=\"page\",alertstate=\"firing\"}" },
    ]
  }
}
