package config

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/private"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// dryRunLimit bounds the check by the server, so that one that cannot be
// reached does not hold up a plan.
const dryRunLimit = 20 * time.Second

// ModifyPlan fills the tenant in, finds two resources that manage the same
// list, asks the server whether it would take the plan, and warns of what a
// deletion means.
func (r *Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		r.planDeletion(ctx, req, resp)
		return
	}
	if r.connection == nil {
		return
	}
	r.connection.PlanTenant(ctx, req, resp)
	var plan model
	resp.Diagnostics.Append(resp.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() || plan.Tenant.IsUnknown() {
		return
	}
	r.claim(plan, req.Config.Raw.String(), &resp.Diagnostics)
	if !resp.Plan.Raw.Equal(req.State.Raw) {
		r.dryRun(ctx, plan, &resp.Diagnostics)
	}
}

// claim refuses a second resource that manages a list of the same tenant: the
// two would overwrite each other in turn for ever.
func (r *Resource) claim(plan model, configuration string, diags *diag.Diagnostics) {
	owned := map[string]bool{
		applications: !plan.WorkerApplications.IsNull(),
		windows:      !plan.MaintenanceWindows.IsNull(),
	}
	for list, owns := range owned {
		if owns && !r.connection.Claim(plan.Tenant.ValueString(), list, configuration) {
			diags.AddAttributeError(path.Root(list), "Two resources manage the same list",
				"Another "+TypeName+" of this configuration manages "+list+" of tenant "+plan.Tenant.ValueString()+
					" too, and each would undo what the other does. Leave the list out of one of them, or make one of both.")
		}
	}
}

// dryRun asks the server to check the plan (AV-8). Only its no is an error.
func (r *Resource) dryRun(ctx context.Context, plan model, diags *diag.Diagnostics) {
	known := window.Known(ctx, plan.WorkerApplications) && window.Known(ctx, plan.MaintenanceWindows)
	if !known || !r.connection.Reachable() || !r.connection.ValidateAtPlan || diags.HasError() {
		return
	}
	failure := diagnostic.Failure{Operation: "The server would not accept " + TypeName, Tenant: plan.Tenant.ValueString()}
	want := plan.toAPI(ctx, diags)
	ctx, cancel := context.WithTimeout(ctx, dryRunLimit)
	defer cancel()
	failure.Err = r.connection.Client(diags, failure.Operation).ValidateConfig(ctx, failure.Tenant, want)
	switch {
	case failure.Err == nil:
	case refused(failure.Err):
		failure.Add(diags, locate)
	default:
		failure.Operation = "Unable to have the server check " + TypeName
		failure.Warn(diags, "The plan was not checked by the server; apply may still fail. "+
			"Set validate_at_plan = false on the provider to plan without the check.")
	}
}

// refused reports whether the server found the content wrong.
func refused(err error) bool {
	var answer *client.Error
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	default:
		return false
	}
}

// planDeletion notes what is deleted, and warns of what that means.
func (r *Resource) planDeletion(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if r.connection.Reachable() {
		ctx, cancel := context.WithTimeout(ctx, dryRunLimit)
		defer cancel()
		api := r.connection.Client(&resp.Diagnostics, "Unable to plan the deletion of "+TypeName)
		// When this fails, the deletion goes by what the state knows.
		if server, etag, err := api.Config(ctx, state.Tenant.ValueString()); err == nil {
			private.KeepETag(ctx, resp.Private, etag, &resp.Diagnostics)
			private.KeepContent(ctx, resp.Private, server, &resp.Diagnostics)
		}
	}
	if len(state.MaintenanceWindows.Elements())+len(state.WorkerApplications.Elements()) == 0 {
		return
	}
	resp.Diagnostics.AddWarning("Hosts are no longer upgraded",
		"When "+TypeName+" of tenant "+state.Tenant.ValueString()+" is deleted, its maintenance windows and worker applications that are managed here go. "+
			"From then on no run starts by itself. A run that is under way ends first, within timeouts.delete.")
}
