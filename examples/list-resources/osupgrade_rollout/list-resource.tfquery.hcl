list "osupgrade_rollout" "all" {
  provider = osupgrade
}
