list "osupgrade_user" "all" {
  provider = osupgrade
}
