package run

import (
	"context"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// rollbackAction is osupgrade_rollback_run, which rolls back a run.
type rollbackAction struct{ connected }

var _ action.ActionWithConfigure = (*rollbackAction)(nil)

const rollbackTypeName = "osupgrade_rollback_run"

// rollbackWaiter waits for a rollback.
var rollbackWaiter = waiter{
	typeName: rollbackTypeName, did: "was started", limit: invokeLimitName, again: "invoke the action again",
	interrupted: "Invoked again, the action waits for its end.",
	timedOut:    "If it still is when the action is invoked again, that waits for its end instead of starting another.",
}

// rollbackModel is the Terraform model of the action.
type rollbackModel struct {
	Tenant      types.String `tfsdk:"tenant"`
	Environment types.String `tfsdk:"environment"`
	Run         types.Int64  `tfsdk:"run"`
	Reason      types.String `tfsdk:"reason"`
	Duration    types.String `tfsdk:"duration"`
	Wait        types.Bool   `tfsdk:"wait"`
	Accept      types.Set    `tfsdk:"accept"`
	Timeouts    types.Object `tfsdk:"timeouts"`
}

// Metadata sets the type name.
func (*rollbackAction) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = rollbackTypeName
}

// Schema defines the action.
func (*rollbackAction) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Rolls back a run, and waits for the end of the rollback: the stages come in reverse order, each step is its undo, and each host goes back to what it had before. " +
			"The runs that belong to it are rolled back, too: those that it went on from, and those before it to the same release. " +
			"A rollback waits for no window, but not even a rollback starts in a freeze. Once the point of no return of the rollout has begun, there is no way back. " +
			"If another run is in progress, the action first waits for its end. Supported by `osupgrade-agent` only.",
		Attributes: map[string]schema.Attribute{
			"tenant":      tenantActionAttribute(),
			"environment": schema.StringAttribute{Optional: true, MarkdownDescription: "The environment of the run; `default` has the hosts that are in no other. Needed without `run` if several environments have runs.", Validators: []validator.String{validators.Name()}},
			"run": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "The id of the run to roll back. By default it is the newest run of the environment that upgraded a host.",
				Validators: []validator.Int64{validators.Number(1, 0)},
			},
			"reason":   schema.StringAttribute{Required: true, MarkdownDescription: "The reason, kept in the history of the run; at most 1,000 characters.", Validators: []validator.String{validators.Text()}},
			"duration": schema.StringAttribute{Optional: true, MarkdownDescription: "How long the rollback may take, such as `2h`; `4h` by default."},
		},
	}
	maps.Copy(resp.Schema.Attributes, waitAttributes(true))
}

// Invoke rolls back a run and waits for the end of that.
func (a *rollbackAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	const operation = "Unable to invoke " + rollbackTypeName
	var m rollbackModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	m.Tenant = a.data.TenantOr(m.Tenant)
	tenant := providerdata.NeedTenant(&resp.Diagnostics, m.Tenant)
	api := a.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, invokeLimit(m.Timeouts))
	defer cancel()
	w := rollbackWaiter
	w.send = sender(resp)
	start := v1.Start{
		Environment: m.Environment.ValueString(), Rollback: m.Run.IsNull(), RollbackOf: uint64(m.Run.ValueInt64()), Reason: m.Reason.ValueString(), Duration: m.Duration.ValueString(),
	}
	begun, err := w.begin(ctx, api, tenant, fmt.Sprintf("tf-rollback-%d-", start.RollbackOf), start)
	if err != nil {
		diagnostics.Failure{Operation: operation, Tenant: tenant, Err: err, Refused: refusedRollback, NotFound: noConfiguration}.Add(&resp.Diagnostics, diagnostics.Field)
		return
	}
	if !m.Wait.IsNull() && !m.Wait.ValueBool() {
		w.done(ctx, begun)
		return
	}
	w.await(ctx, api, tenant, begun, m.Accept, &resp.Diagnostics)
}

// refusedRollback is the advice for a rollback that the server refuses as things are.
const refusedRollback = "Nothing was rolled back. osupgrade-agent rollback --dry-run shows which hosts would go back, and which would not."
