# The id is the name of the tenant, or * for all tenants, and that of the user, with a slash between them.
terraform import osupgrade_user.ann acme/ann
