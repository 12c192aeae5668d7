# A tenant's whole policy: when its hosts are upgraded, when they are not, and in which
# order.

locals {
  rest = { name = "rest", max_unavailable = var.max_unavailable }
  canary = var.canary == null ? [] : [{
    name     = "canary"
    match    = { hosts = var.canary.hosts, labels = var.canary.labels, roles = var.canary.roles }
    soak     = var.canary.soak
    approval = var.canary.approval
  }]
}

resource "osupgrade_calendar" "freeze" {
  for_each = var.freezes

  tenant      = var.tenant
  name        = each.key
  kind        = "freeze"
  description = each.value.description
  events      = each.value.events
  ics         = each.value.ics
  url         = each.value.url
  refresh     = each.value.refresh
}

resource "osupgrade_rollout" "this" {
  tenant       = var.tenant
  stages       = concat(local.canary, [local.rest])
  max_failures = var.max_failures
  on_failure   = var.on_failure
  checks       = var.checks
  hooks        = var.hooks
}

resource "osupgrade_config" "this" {
  tenant              = var.tenant
  worker_applications = var.worker_applications
  maintenance_windows = var.maintenance_windows

  # A window may be open now: its run starts as soon as the window is written, and goes
  # by the freezes and the rollout that exist then. Destroy goes the other way round.
  depends_on = [osupgrade_calendar.freeze, osupgrade_rollout.this]
}
