# The id is the name of the tenant and that of the release, with a slash between them.
terraform import osupgrade_release.packages acme/security-2026-11-21
