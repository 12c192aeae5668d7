resource "osupgrade_disruption_budget" "racks" {
  tenant          = "acme"
  name            = "racks"
  per             = "rack"
  max_unavailable = "1"
}
