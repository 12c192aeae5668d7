# A run after each change of the release, also outside the maintenance windows.
resource "terraform_data" "release" {
  input = "2026-11"

  lifecycle {
    action_trigger {
      events  = [after_create, after_update]
      actions = [action.osupgrade_start.release]
    }
  }
}

action "osupgrade_start" "release" {
  config {
    triggers        = { release = terraform_data.release.output }
    override_window = true
    reason          = "Release ${terraform_data.release.output}"
    duration        = "2h"
  }
}
