import {
  to = osupgrade_disruption_budget.racks
  id = "acme/racks"
}
