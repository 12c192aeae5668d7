data "osupgrade_runs" "failed" {
  result = "failed"
  limit  = 5
}

output "failures" {
  value = {
    for run in data.osupgrade_runs.failed.runs : run.id => {
      reason = run.reason
      hosts  = { for host in run.hosts : host.hostname => host.error if host.status == "failed" }
    }
  }
}
