// Package run is the resource osupgrade_run, which starts a run when its triggers
// change and waits for the end of the run.
//
// It decides which results fail the apply. It never ends, pauses or undoes a
// run; deleting the resource changes nothing on the server.
package run

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/connection"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
)

// TypeName is the type name of the resource.
const TypeName = "osupgrade_run"

// usualLength is the API's default for the longest duration of a run started by
// hand.
const usualLength = 4 * time.Hour

// margin is added to the duration of a run, for its start and for the news of
// its end.
const margin = 5 * time.Minute

// readLimit bounds the read of a run, which is one small object.
const readLimit = 5 * time.Minute

// Resource is osupgrade_run.
type Resource struct {
	connection *connection.Connection
}

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

// New returns the resource.
func New() resource.Resource { return &Resource{} }

// Metadata sets the type name.
func (*Resource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = TypeName
}

// Configure gets the connection from the provider.
func (r *Resource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.connection = connection.From(req.ProviderData, &resp.Diagnostics)
}

// ModifyPlan sets the tenant.
func (r *Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if !req.Plan.Raw.IsNull() && r.connection != nil {
		r.connection.PlanTenant(ctx, req, resp)
	}
}

// ValidateConfig applies the API's rules for a start. The rules concern several
// attributes together, so it waits until all of them are known.
func (*Resource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || m.OverrideWindow.IsUnknown() || m.Reason.IsUnknown() || m.Duration.IsUnknown() {
		return
	}
	for _, problem := range m.start().Validate() {
		at, ok := diagnostic.Field(problem.Field)
		if !ok {
			at = path.Empty()
		}
		resp.Diagnostics.AddAttributeError(at, "Invalid configuration of "+TypeName, problem.Message)
	}
}
