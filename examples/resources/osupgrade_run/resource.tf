variable "release" {
  type    = string
  default = "2026-11"
}

# Another release starts another run, also outside of the maintenance windows.
resource "osupgrade_run" "acme" {
  triggers        = { release = var.release }
  override_window = true
  reason          = "Release ${var.release}"
  duration        = "2h"
}
