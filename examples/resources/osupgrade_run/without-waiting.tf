# The apply ends when the run has started.
resource "osupgrade_run" "night" {
  triggers        = { release = "2026-11" }
  override_window = true
  reason          = "Release 2026-11"
  wait            = false
}

# A later plan warns if the run did not upgrade all hosts.
data "osupgrade_runs" "newest" {
  limit = 1
}

check "night" {
  assert {
    condition     = alltrue([for run in data.osupgrade_runs.newest.runs : run.result == "completed" if run.ended_at != null])
    error_message = "The newest run did not upgrade all hosts."
  }
}
