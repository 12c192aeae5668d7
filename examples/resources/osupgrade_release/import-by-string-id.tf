import {
  to = osupgrade_release.packages
  id = "acme/security-2026-11-21"
}
