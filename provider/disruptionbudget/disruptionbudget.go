// Package disruptionbudget is the resource osupgrade_disruption_budget: how many of some hosts of a
// tenant may be out of service at once, which only osupgrade-agent supports.
//
// It defines the attributes. Package tenantobject maps them to the members of the API's
// object, and reads and writes it.
package disruptionbudget

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// TypeName is the type name of the resource.
const TypeName = "osupgrade_disruption_budget"

// Resource is osupgrade_disruption_budget.
type Resource struct {
	tenantobject.Resource[v1.Budget, model, *model]
}

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithIdentity       = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

var kind = &tenantobject.Mapping[v1.Budget]{
	TypeName: TypeName, Describe: attributes, Validate: v1.Budget.Validate,
	Meaning: func(b v1.Budget) v1.Budget { return b },
}

// New returns the resource.
func New() resource.Resource {
	return &Resource{tenantobject.New[v1.Budget, model](kind.Kind("Disruption budgets", tenantobject.Kind[v1.Budget]{
		Noun:   "disruption budget",
		Object: func(at tenantobject.Key) client.Object[v1.Budget] { return client.BudgetNamed(at.Name) },
		List: func(ctx context.Context, api *client.Client, tenant string) (map[string]client.Stored[v1.Budget], error) {
			return api.StoredBudgets(ctx, tenant)
		},
	}))}
}

// NewList returns the list for terraform query.
func NewList() list.ListResource {
	kind, _ := New().(*Resource)
	return kind.List("The disruption budgets of a tenant.", nil)
}
