list "osupgrade_approle" "all" {
  provider = osupgrade
}
