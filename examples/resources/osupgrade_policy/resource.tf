resource "osupgrade_policy" "night_shift" {
  tenant = "acme"
  name   = "night-shift"

  rest_api = {
    rules = [
      { path = "/v1/*/os-upgrade/**", operations = { read = "allow" } },
      { path = "/v1/state/os-upgrade/join-tokens/**", operations = { all = "reject" } },
      {
        path        = "/v1/state/os-upgrade/pause"
        description = "Stop, and wake somebody."
        operations  = { execute = "allow" }
      },
    ]
  }
}
