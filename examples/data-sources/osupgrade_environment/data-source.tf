data "osupgrade_environment" "basel" {
  name = "basel"
}

output "basel_is_up_to_date" {
  value = data.osupgrade_environment.basel.outdated == 0
}

output "basel_windows" {
  value = data.osupgrade_environment.basel.maintenance_windows
}
