// Package run is the resource osupgrade_run: it starts a run by hand when its
// triggers change, and waits for its end.
//
// It decides what a run's end means for the apply. It never ends, pauses or
// undoes a run; deleting the resource changes nothing on the server.
package run

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/connection"
)

// TypeName is the name of the resource.
const TypeName = "osupgrade_run"

// usualLength is how long a run by hand lasts at most when nothing says
// otherwise, as the API has it.
const usualLength = 4 * time.Hour

// margin is added to a run's length for starting it and for hearing of its
// end.
const margin = 5 * time.Minute

// readLimit bounds one reading; a run is one small object.
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

// New makes the resource.
func New() resource.Resource { return &Resource{} }

// Metadata names the resource.
func (*Resource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = TypeName
}

// Configure takes the connection over from the provider.
func (r *Resource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.connection = connection.From(req.ProviderData, &resp.Diagnostics)
}

// ModifyPlan fills the tenant in.
func (r *Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if !req.Plan.Raw.IsNull() && r.connection != nil {
		r.connection.PlanTenant(ctx, req, resp)
	}
}
