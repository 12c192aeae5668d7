package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

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
	path, err := tenantPath("config", tenant, "/budgets")
	if err != nil {
		return nil, err
	}
	var list []struct {
		Name   string          `json:"name"`
		ETag   string          `json:"etag"`
		Budget json.RawMessage `json:"budget"`
	}
	if err := c.get(ctx, path, url.Values{"content": {"true"}}, &list); err != nil {
		return nil, err
	}
	all := map[string]Stored[v1.Budget]{}
	for _, one := range list {
		if one.ETag == "" || len(one.Budget) == 0 {
			return nil, fmt.Errorf("GET %s told nothing of the revision or of what is in disruption budget %q", path, one.Name)
		}
		if all[one.Name], err = NewStored[v1.Budget](one.ETag, one.Budget); err != nil {
			return nil, fmt.Errorf("GET %s: disruption budget %q: %w", path, one.Name, err)
		}
	}
	return all, nil
}
