list "osupgrade_webhook" "all" {
  provider = osupgrade
}
