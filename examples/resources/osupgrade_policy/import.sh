# The id is the name of the tenant and that of the policy, with a slash between them.
terraform import osupgrade_policy.night_shift acme/night-shift
