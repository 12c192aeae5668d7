package rollout

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantresource"
)

// model is the resource as Terraform has it.
type model struct {
	tenantresource.Common
	Policy
}

// Policy are the attributes that make up the API's object: see package whole.
type Policy struct {
	Stages       types.List   `tfsdk:"stages"`
	MaxFailures  types.String `tfsdk:"max_failures"`
	OnFailure    types.String `tfsdk:"on_failure"`
	MinPrepared  types.String `tfsdk:"min_prepared"`
	Overrun      types.String `tfsdk:"overrun"`
	Reserve      types.String `tfsdk:"reserve"`
	Splay        types.String `tfsdk:"splay"`
	Paused       types.Bool   `tfsdk:"paused"`
	Exempt       types.Object `tfsdk:"exempt"`
	ExemptReboot types.Object `tfsdk:"exempt_reboot"`
	Checks       types.Object `tfsdk:"checks"`
	Hooks        types.Object `tfsdk:"hooks"`
	StepTimeouts types.Object `tfsdk:"step_timeouts"`
}

// ToAPI is what the model declares.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.Rollout {
	return kind.ToAPI(ctx, m.Policy, diags)
}

// FromAPI takes over what the server has.
func (m *model) FromAPI(ctx context.Context, server v1.Rollout, all bool, diags *diag.Diagnostics) {
	kind.FromAPI(ctx, &m.Policy, server, all, diags)
}

// Claims is the rollout as a whole.
func (*model) Claims() map[string]path.Path {
	return map[string]path.Path{"the rollout": path.Root("tenant")}
}

// Loss tells that the defaults hold again.
func (*model) Loss(tenant string) (summary, detail string) {
	return "Runs go by the defaults again",
		"When " + TypeName + " of tenant " + tenant + " is deleted, its stages, limits, checks and hooks go. " +
			"From then on its runs have one stage of all hosts, one host at a time, no checks and no hooks, and stop at the first failure. " +
			"A pause that the rollout declares ends."
}
