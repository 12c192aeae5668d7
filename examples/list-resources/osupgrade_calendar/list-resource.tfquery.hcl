list "osupgrade_calendar" "all" {
  provider = osupgrade
}
