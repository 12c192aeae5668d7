# The id is the name of the tenant and that of the environment, with a slash between them.
terraform import osupgrade_environment.basel acme/basel
