# The id is the name of the tenant, or * for all tenants, and that of the approle, with a slash between them.
terraform import osupgrade_approle.deploy acme/deploy
