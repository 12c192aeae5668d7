# terraform apply -invoke=action.osupgrade_resume.acme
action "osupgrade_resume" "acme" {
  config {
    reason = "The database is well again"
    wait   = true
  }
}
