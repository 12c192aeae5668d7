# The id is the name of the tenant and that of the disruption budget, with a slash between them.
terraform import osupgrade_disruption_budget.racks acme/racks
