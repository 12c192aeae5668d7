package api

import (
	"context"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// budget returns the disruption budget with the name in the path. It may be changed or deleted at
// any time, also during a run, for which it counts at once.
func (s *server) budget(c *call) (*object[v1.Budget], error) {
	name := c.PathValue("name")
	if !names.Valid(name) {
		return nil, badRequest("name", name, fmt.Sprintf(`is not the name of a disruption budget; use 1 to %d of a-z, 0-9 and "-", with a letter or digit at both ends`, names.MaxLength))
	}
	return &object[v1.Budget]{
		server: s, noun: "disruption budget " + name,
		read: func(ctx context.Context, tenant string) (v1.Kept[v1.Budget], store.Revision, error) {
			return s.Store.Budget(ctx, tenant, name)
		},
		put: func(ctx context.Context, tenant string, value v1.Kept[v1.Budget], base store.Revision) (store.Revision, error) {
			return s.Store.PutBudget(ctx, tenant, name, value, base)
		},
		remove: func(ctx context.Context, tenant string, base store.Revision) (store.Revision, error) {
			return s.Store.DeleteBudget(ctx, tenant, name, base)
		},
		form: v1.BudgetForm, recorded: func(b v1.Budget) v1.Budget { return b }, freezing: &freezing[v1.Budget]{},
		refers: func(b v1.Budget) plan.Intent { return plan.Intent{Budgets: plan.Budgets{{Name: name, Budget: b}}} },
		room:   s.Store.RoomForBudget,
	}, nil
}

// postBudget creates the disruption budget whose name is in the body.
func (s *server) postBudget(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	name, value, err := v1.DecodeNewBudget(c.Header.Get("Content-Type"), body, c.has(unknownMembers))
	if err != nil {
		return err
	}
	c.SetPathValue("name", name)
	c.audit.Object = "budget/" + name
	o, err := s.budget(c)
	if err != nil {
		return err
	}
	return o.create(c, c.URL.Path+"/"+name, value)
}

// getBudgets lists the tenant's disruption budgets by name, with content=true also their content.
func (s *server) getBudgets(c *call) error {
	all, err := s.Store.Budgets(c.Context(), c.tenant)
	if err != nil {
		return err
	}
	list := make([]v1.BudgetInfo, len(all))
	for i, named := range all {
		list[i] = v1.BudgetInfo{Name: named.Name, ETag: named.Revision.ETag()}
		if c.has("content") {
			list[i].Budget = &all[i].Value
		}
	}
	return sendList(s, c, list, func(i v1.BudgetInfo) string { return i.Name })
}
