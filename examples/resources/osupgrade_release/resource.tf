resource "osupgrade_release" "packages" {
  tenant      = "acme"
  name        = "security-2026-11-21"
  description = "Security updates as of 21 November"

  packages = {
    select = "security"
    as_of  = "2026-11-21T00:00:00Z"
    except = ["postgresql-*"]
  }

  # An environment names the new release before the old one is deleted.
  lifecycle {
    create_before_destroy = true
  }
}

resource "osupgrade_environment" "basel" {
  tenant   = "acme"
  name     = "basel"
  match    = { labels = { shop = "basel" } }
  releases = { os = osupgrade_release.packages.name }
}
