# The id is the tenant and the id of the run, or the latter alone.
terraform import osupgrade_run.acme acme/41
