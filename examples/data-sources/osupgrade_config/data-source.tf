data "osupgrade_config" "acme" {}

output "windows" {
  description = "The maintenance windows, whoever declared them."
  value       = data.osupgrade_config.acme.maintenance_windows
}
