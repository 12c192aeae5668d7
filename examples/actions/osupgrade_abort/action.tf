# terraform apply -invoke=action.osupgrade_abort.acme
action "osupgrade_abort" "acme" {
  config {
    reason = "The release is withdrawn"
  }
}
