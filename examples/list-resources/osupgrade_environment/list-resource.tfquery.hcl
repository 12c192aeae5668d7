list "osupgrade_environment" "all" {
  provider = osupgrade
}
