resource "osupgrade_approle" "deploy" {
  tenant         = "acme"
  name           = "deploy"
  token_policies = ["read", "write"]
  secret_id_ttl  = "10m"
}

output "deploy_role_id" {
  value = osupgrade_approle.deploy.role_id
}
