package run

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// skipAction is osupgrade_skip_window, which skips a window of an environment.
type skipAction struct{ connected }

var (
	_ action.ActionWithConfigure      = (*skipAction)(nil)
	_ action.ActionWithModifyPlan     = (*skipAction)(nil)
	_ action.ActionWithValidateConfig = (*skipAction)(nil)
)

const skipTypeName = "osupgrade_skip_window"

// skipModel is the Terraform model of the action.
type skipModel struct {
	Tenant      types.String `tfsdk:"tenant"`
	Environment types.String `tfsdk:"environment"`
	WindowStart types.String `tfsdk:"window_start"`
	Reason      types.String `tfsdk:"reason"`
}

func (m skipModel) request() v1.SkipWindow {
	return v1.SkipWindow{Environment: m.Environment.ValueString(), WindowStart: m.WindowStart.ValueString(), Reason: m.Reason.ValueString()}
}

// Metadata sets the type name.
func (*skipAction) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = skipTypeName
}

// Schema defines the action.
func (*skipAction) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Skips one window: it opens no run by itself and is not missed. If somebody has skipped the window already, nothing changes. To undo it before the window closes, use `osupgrade-agent unskip-window`. " +
			"Supported by `osupgrade-agent` only.",
		Attributes: map[string]schema.Attribute{
			"tenant": tenantActionAttribute(),
			"environment": schema.StringAttribute{
				Optional: true, MarkdownDescription: "The environment of the window; without it, `default`.",
				Validators: []validator.String{validators.Name()},
			},
			"window_start": schema.StringAttribute{
				Optional: true, MarkdownDescription: "When the window opens (RFC 3339), such as `2026-11-29T01:00:00Z`; by default the next window that has not had its run. Set it if the action may be invoked more than once for the same window.",
			},
			"reason": schema.StringAttribute{
				Required: true, MarkdownDescription: "The reason, shown with the window; at most 1,000 characters.",
				Validators: []validator.String{validators.Text()},
			},
		},
	}
}

// ValidateConfig applies the API's rules. It waits until all values are known.
func (*skipAction) ValidateConfig(ctx context.Context, req action.ValidateConfigRequest, resp *action.ValidateConfigResponse) {
	var m skipModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || m.Environment.IsUnknown() || m.WindowStart.IsUnknown() || m.Reason.IsUnknown() {
		return
	}
	invalid(skipTypeName, m.request().Validate(), &resp.Diagnostics)
}

// ModifyPlan tells that there is no tenant.
func (a *skipAction) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	var m skipModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	a.plannedTenant(m.Tenant, &resp.Diagnostics)
}

// Invoke skips the window.
func (a *skipAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	const operation = "Unable to invoke " + skipTypeName
	var m skipModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	tenant := providerdata.NeedTenant(&resp.Diagnostics, a.data.TenantOr(m.Tenant))
	api := a.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	skipped, err := api.SkipWindow(ctx, tenant, m.request())
	if err != nil {
		diagnostics.Failure{
			Operation: operation, Tenant: tenant, Err: err,
			Refused:  "Nothing was skipped. A window can be skipped until it has had its run; osupgrade-agent windows lists those ahead.",
			NotFound: "Check the names of the tenant and of the environment, and the provider's endpoint. Only osupgrade-agent has this operation.",
		}.Add(&resp.Diagnostics, diagnostics.Field)
		return
	}
	sender(resp)(fmt.Sprintf("the window from %s to %s is skipped by %s: %s", skipped.Start.Format(time.RFC3339), skipped.End.Format(time.RFC3339), skipped.By, skipped.Reason))
}
