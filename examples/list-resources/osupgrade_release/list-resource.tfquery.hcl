list "osupgrade_release" "all" {
  provider = osupgrade
}
