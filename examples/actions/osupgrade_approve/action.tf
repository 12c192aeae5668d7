# terraform apply -invoke=action.osupgrade_approve.rest
action "osupgrade_approve" "rest" {
  config {
    stage  = "rest"
    reason = "The canaries are well"
  }
}
