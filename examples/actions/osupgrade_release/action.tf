# terraform apply -invoke=action.osupgrade_release.h02
action "osupgrade_release" "h02" {
  config {
    host   = "h02"
    reason = "The machine is scrapped"
  }
}
