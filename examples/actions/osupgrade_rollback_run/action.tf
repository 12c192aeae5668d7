# Invoke it by hand: terraform apply -invoke=action.osupgrade_rollback_run.release
action "osupgrade_rollback_run" "release" {
  config {
    reason = "The new kernel loses packets"
  }
}
