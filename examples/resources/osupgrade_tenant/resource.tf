resource "osupgrade_tenant" "beta" {
  name             = "beta"
  descriptive_name = "Beta Ltd"
}

resource "osupgrade_calendar" "beta_audit" {
  tenant = osupgrade_tenant.beta.name
  name   = "audit"
  kind   = "freeze"
  events = [{ start = "2027-03-01T18:00", duration = "4h" }]
}
