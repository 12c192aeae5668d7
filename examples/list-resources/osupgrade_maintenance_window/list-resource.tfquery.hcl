list "osupgrade_maintenance_window" "all" {
  provider = osupgrade
}
