# The failed runs of a year.
list "osupgrade_run" "failed" {
  provider = osupgrade

  config {
    result = "failed"
    since  = "2026-01-01T00:00:00Z"
  }
}
