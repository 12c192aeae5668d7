variable "release" {
  type    = string
  default = "2026-11"
}

# A new release starts a run, also outside the maintenance windows.
resource "osupgrade_run" "acme" {
  triggers        = { release = var.release }
  override_window = true
  reason          = "Release ${var.release}"
  duration        = "2h"

  # The run goes by what is declared when it starts.
  depends_on = [osupgrade_rollout.acme]
}

resource "osupgrade_rollout" "acme" {
  stages = [{ name = "all", max_unavailable = "50%" }]
}
