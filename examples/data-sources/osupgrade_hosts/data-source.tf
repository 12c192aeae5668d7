data "osupgrade_hosts" "acme" {}

output "versions" {
  value = { for host in data.osupgrade_hosts.acme.hosts : host.hostname => host.versions }
}

output "offline" {
  value = [for host in data.osupgrade_hosts.acme.hosts : host.hostname if !host.online]
}
