package run

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// startAction is osupgrade_start, which starts a run as the resource does, but once for each
// time that it is invoked.
type startAction struct{ connected }

var (
	_ action.ActionWithConfigure      = (*startAction)(nil)
	_ action.ActionWithModifyPlan     = (*startAction)(nil)
	_ action.ActionWithValidateConfig = (*startAction)(nil)
)

const startTypeName = "osupgrade_start"

// startWaiter waits for a run that the action has started.
var startWaiter = waiter{
	typeName: startTypeName, did: "was started", limit: invokeLimitName,
	retry: "set retry_of = %d", again: "invoke the action again",
	interrupted: "Invoked again with the same triggers, the action waits for its end.",
	timedOut:    "If it still is when the action is invoked again with the same triggers, that waits for its end instead of starting another.",
}

// startModel is the Terraform model of the action.
type startModel struct {
	common
	Wait types.Bool `tfsdk:"wait"`
}

func (m startModel) request() request { return request{common: m.common} }

// Metadata sets the type name.
func (*startAction) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = startTypeName
}

// Schema defines the action.
func (*startAction) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Starts a run, which is one pass over the hosts of a tenant, and waits for its end. If the result of the run is not in `accept`, the action fails with the reason of the run, the errors of its hosts and what to do. " +
			"If another run is in progress, the action first waits for its end.\n\n" +
			"Use the resource `osupgrade_run` for a run that belongs to a state: one for each release, say. Use this action for a run that is asked for by hand, or after each change of another resource.",
		Attributes: map[string]schema.Attribute{
			"tenant": tenantActionAttribute(),
			"triggers": schema.MapAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "Any values that say what the run is for. If a run is in progress that this action has started with the same values, as before an interrupt, the action takes it over instead of starting another.",
			},
			"override_window": schema.BoolAttribute{Optional: true, MarkdownDescription: aboutOverride},
			"reason": schema.StringAttribute{
				Optional: true, MarkdownDescription: aboutReason,
				Validators: []validator.String{validators.Text()},
			},
			"duration": schema.StringAttribute{Optional: true, MarkdownDescription: aboutDuration},
			"retry_of": schema.Int64Attribute{
				Optional: true, MarkdownDescription: aboutRetryOf,
				Validators: []validator.Int64{validators.Number(1, 0)},
			},
			"environment":    schema.StringAttribute{Optional: true, MarkdownDescription: aboutEnvironment, Validators: []validator.String{validators.Name()}},
			"override_after": schema.StringAttribute{Optional: true, MarkdownDescription: aboutOverrideAfter, Validators: []validator.String{validators.Text()}},
			"host_names":     schema.SetAttribute{ElementType: types.StringType, Optional: true, MarkdownDescription: aboutHostNames, Validators: hostNameValidators()},
			"labels":         schema.MapAttribute{ElementType: types.StringType, Optional: true, MarkdownDescription: aboutLabels, Validators: labelValidators()},
			"roles":          schema.SetAttribute{ElementType: types.StringType, Optional: true, MarkdownDescription: aboutRoles, Validators: roleValidators()},
			"until":          schema.StringAttribute{Optional: true, MarkdownDescription: aboutUntil, Validators: []validator.String{validators.Name()}},
			"release":        schema.StringAttribute{Optional: true, MarkdownDescription: aboutRelease, Validators: []validator.String{validators.Name()}},
		},
	}
	maps.Copy(resp.Schema.Attributes, waitAttributes(true))
}

// ValidateConfig applies the API's rules for a start.
func (*startAction) ValidateConfig(ctx context.Context, req action.ValidateConfigRequest, resp *action.ValidateConfigResponse) {
	var m startModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if !resp.Diagnostics.HasError() {
		m.request().validate(startTypeName, &resp.Diagnostics)
	}
}

// ModifyPlan warns if a run could not start now.
func (a *startAction) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	var m startModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if m.Tenant = a.plannedTenant(m.Tenant, &resp.Diagnostics); !resp.Diagnostics.HasError() {
		preflight(ctx, a.data, startTypeName, m.request(), &resp.Diagnostics)
	}
}

// Invoke starts a run and waits for its end.
func (a *startAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	const operation = "Unable to invoke " + startTypeName
	var m startModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	m.Tenant = a.data.TenantOr(m.Tenant)
	tenant := providerdata.NeedTenant(&resp.Diagnostics, m.Tenant)
	api := a.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, invokeLimit(m.Timeouts))
	defer cancel()
	w := startWaiter
	w.send = sender(resp)
	run, err := w.begin(ctx, api, tenant, m.request().purpose(startTypeName), m.request().start())
	if err != nil {
		diagnostics.Failure{Operation: operation, Tenant: tenant, Err: err, Refused: refusedInvocation, NotFound: noConfiguration}.Add(&resp.Diagnostics, diagnostics.Field)
		return
	}
	if !m.Wait.IsNull() && !m.Wait.ValueBool() {
		w.done(ctx, run)
		return
	}
	w.await(ctx, api, tenant, run, m.Accept, &resp.Diagnostics)
}

// refusedInvocation is the advice for a start that the server refuses as things are.
const refusedInvocation = "No run was started. Invoke the action again when a maintenance window is open, or set override_window = true and a reason to start outside of the windows. " +
	"Nothing overrides a freeze."
