list "osupgrade_policy" "all" {
  provider = osupgrade
}
