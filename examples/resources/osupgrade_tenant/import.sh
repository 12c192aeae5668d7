# The id is the name of the tenant.
terraform import osupgrade_tenant.beta beta
