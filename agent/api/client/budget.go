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
func (c *Client) Budgets(ctx context.Context, tenant string) (list []v1.BudgetInfo, err error) {
	path, err := tenantPath("config", tenant, "/budgets")
	if err != nil {
		return nil, err
	}
	return list, c.get(ctx, path, nil, &list)
}

// StoredBudgets gets all disruption budgets of a tenant at once, by name, as StoredCalendars does.
func (c *Client) StoredBudgets(ctx context.Context, tenant string) (map[string]Stored[v1.Budget], error) {
	return storedList[v1.Budget](ctx, c, tenant, "/budgets", "budget")
}

// Budget gets a tenant's disruption budget and its ETag. An absent one is an *Error of status 404,
// see Missing.
func (c *Client) Budget(ctx context.Context, tenant, name string) (v1.Budget, string, error) {
	s, err := BudgetNamed(name).Get(ctx, c, tenant)
	return s.Value, s.ETag, err
}

// PutBudget creates or replaces it, and returns the new ETag. A precondition that does not hold is
// an *Error of status 412.
func (c *Client) PutBudget(ctx context.Context, tenant, name string, budget v1.Budget, when Precondition) (etag string, err error) {
	s, err := BudgetNamed(name).Put(ctx, c, tenant, Stored[v1.Budget]{}, budget, when)
	return s.ETag, err
}

// DeleteBudget removes it. One that is not there is no error; a tenant that is not there is one.
func (c *Client) DeleteBudget(ctx context.Context, tenant, name string, when Precondition) error {
	return BudgetNamed(name).Delete(ctx, c, tenant, when)
}
