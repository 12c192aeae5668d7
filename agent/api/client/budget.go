package client

import (
	"context"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// BudgetNamed are the tenants' disruption budgets of a name, as CalendarNamed are their calendars.
func BudgetNamed(name string) Object[v1.Budget] {
	o := Object[v1.Budget]{noun: v1.BudgetObject(name), rest: "/budgets/" + name, same: v1.SameBudget, canonical: func(b v1.Budget) v1.Budget { return b }}
	if !names.Valid(name) {
		o.invalid = fmt.Errorf("disruption budget %q is not a name; use at most %d of a-z, 0-9 and -, with no - at either end", name, names.MaxLength)
	}
	return o
}

// Budgets lists a tenant's disruption budgets, by name.
func (c *Client) Budgets(ctx context.Context, tenant string) ([]v1.BudgetInfo, error) {
	return listed[v1.BudgetInfo](ctx, c, tenant, "/budgets")
}

// StoredBudgets gets all disruption budgets of a tenant at once, by name, as StoredCalendars does.
func (c *Client) StoredBudgets(ctx context.Context, tenant string) (map[string]Stored[v1.Budget], error) {
	return storedList[v1.Budget](ctx, c, tenant, "/budgets", "budget")
}
