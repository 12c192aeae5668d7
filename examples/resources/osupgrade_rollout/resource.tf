resource "osupgrade_rollout" "acme" {
  stages = [
    {
      name  = "canary"
      match = { labels = { ring = "0" } }
      soak  = "30m"
    },
    {
      name            = "rest"
      max_unavailable = "10%"
    },
  ]

  max_failures     = 2
  on_failure       = "pause"
  prepare_patience = "3m"
  reserve          = "10m"

  checks = {
    after_host = [
      { type = "http", url = "http://127.0.0.1:8080/healthz", passes = 3 },
      { type = "disk", path = "/var", min_free = "10%" },
    ]
  }

  hooks = {
    drain   = { type = "http", url = "https://lb.example.com/hosts/{host}/drain" }
    undrain = { type = "http", url = "https://lb.example.com/hosts/{host}/undrain" }
  }
}
