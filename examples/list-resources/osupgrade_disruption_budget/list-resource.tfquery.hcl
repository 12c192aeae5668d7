list "osupgrade_disruption_budget" "all" {
  provider = osupgrade
}
