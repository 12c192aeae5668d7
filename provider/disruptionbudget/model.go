package disruptionbudget

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/rollout"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// model is the Terraform model of the resource.
type model struct {
	tenantobject.NamedCommon
	Limit
}

// Limit are the attributes of the API's object: see tenantobject.Mapping.
type Limit struct {
	Match          types.Object `tfsdk:"match"`
	Per            types.String `tfsdk:"per"`
	MaxUnavailable types.String `tfsdk:"max_unavailable"`
	MinAvailable   types.String `tfsdk:"min_available"`
	Prometheus     types.Object `tfsdk:"prometheus"`
}

// ToAPI returns the declared budget.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.Budget {
	return kind.ToAPI(ctx, m.Limit, diags)
}

// FromAPI sets the attributes from the server's budget.
func (m *model) FromAPI(ctx context.Context, server v1.Budget, all bool, diags *diag.Diagnostics) {
	kind.FromAPI(ctx, &m.Limit, server, all, diags)
}

// Loss describes the effect of a deletion.
func (m *model) Loss(tenant string) (summary, detail string) {
	return "More hosts may be out of service at once", "After the deletion of disruption budget " + m.Name.ValueString() + " of tenant " + tenant +
		", only the stages of the rollout and other disruption budgets limit how many hosts are out of service. This also affects a run in progress, at once."
}

// Schema defines the resource.
func (*Resource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	all := kind.Attributes()
	all["name"] = tenantobject.NameAttribute("The name of the disruption budget, unique in its tenant: 1 to 63 lower-case letters, digits and hyphens.")
	resp.Schema = schema.Schema{
		MarkdownDescription: "A disruption budget of a tenant: how many of some hosts may be out of service at once, such as one in each rack. " +
			"Supported by `osupgrade-agent` only; Avassa's own API has no such object.\n\n" +
			"It has either `max_unavailable` or `min_available`, as a PodDisruptionBudget of Kubernetes has. A host leaves service only if its stage and each budget that matches it allow that; the smaller number counts. " +
			"A tenant may have up to 100 disruption budgets. A change takes effect at once, also for a run in progress: it calls back no host that is out of service, and lets none follow before enough are back in service.",
		Attributes: tenantobject.Attributes(all, tenantobject.WaitsForNo),
	}
}

// attributes are the attributes of the API's object. ValidateConfig applies the
// API's rules.
func attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"match": rollout.MatchAttribute("The hosts of the budget; all hosts of the tenant by default."),
		"per":   tenantobject.TextAttribute("The key of a label, such as `rack`: hosts with each value of the label are counted apart, and hosts without it together. By default all hosts of the budget are counted together."),
		"max_unavailable": tenantobject.TextAttribute("How many of the hosts that are counted together may be out of service at once, at least `1`. " +
			"A percentage is taken of the hosts that are present when a run is opened, and rounded down, but to at least 1. A host that is unhealthy, or fell silent during a run, counts as out of service."),
		"min_available": tenantobject.TextAttribute("How many of the hosts that are counted together must stay in service. A percentage is rounded up. If all must stay, no host can be upgraded; the plan warns of that."),
		"prometheus": tenantobject.ObjectAttribute("A query to Prometheus that must return nothing, or only values within the bounds, before one of the hosts leaves service. The site asks it. If it cannot get an answer, no host leaves service.", map[string]schema.Attribute{
			"url":   tenantobject.RequiredText("The URL of the server, such as `http://prometheus:9090`, without a path of its API. A token for it is in a file at the site, as for a check of type `prometheus`."),
			"query": tenantobject.RequiredText("The expression, such as `pg_replication_lag_seconds`."),
			"below": tenantobject.TextAttribute("A number such as `0.8`: the query must return something, and each value must be below it."),
			"above": tenantobject.TextAttribute("A number: the query must return something, and each value must be above it."),
		}),
	}
}
