data "osupgrade_releases" "acme" {
  tenant = "acme"
}

output "unused_releases" {
  value = [for r in data.osupgrade_releases.acme.releases : r.name if length(r.named_by) == 0]
}
