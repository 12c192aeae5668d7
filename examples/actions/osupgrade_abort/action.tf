# terraform apply -invoke=action.osupgrade_abort.acme
action "osupgrade_abort" "acme" {
  config {
    reason = "The release is withdrawn"
  }
}

# terraform apply -invoke=action.osupgrade_abort.all
action "osupgrade_abort" "all" {
  config {
    all    = true
    reason = "The release is withdrawn"
  }
}
