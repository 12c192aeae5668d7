package run

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// refusedStart is the advice for a start that the server refuses as things are.
const refusedStart = "No run was started. Apply again when a maintenance window is open, or set override_window = true and a reason to start outside of the windows. " +
	"Nothing overrides a freeze."

// Create starts a run and waits for its end, unless nobody wants to wait. A started run is
// always stored in the state, so that a failure leaves a tainted resource with the run's id.
func (r *Resource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	const operation = "Unable to create " + TypeName
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	plan.Tenant = r.data.TenantOr(plan.Tenant)
	tenant := providerdata.NeedTenant(&resp.Diagnostics, plan.Tenant)
	limit := tenantobject.Timeout(plan.Timeouts, "create", createLimit)
	api := r.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	w := resourceWaiter
	w.holders, w.returns = holdersOf(r.data, tenant), !plan.waits()
	run, err := w.begin(waiting, api, tenant, plan.purpose(plan.starter()), plan.start())
	if err != nil {
		diagnostics.Failure{Operation: operation, Tenant: tenant, Err: err, Refused: refusedStart, NotFound: noConfiguration}.Add(&resp.Diagnostics, diagnostics.Field)
		return
	}
	plan.follow(waiting, api, tenant, run, &resp.Diagnostics)
	plan.identify(ctx, resp.Identity, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// follow follows a run if somebody waits for its end, sets the computed attributes, and judges
// the result. The state has the run also if the wait was interrupted, and the next apply follows
// it.
func (m *model) follow(ctx context.Context, api *client.Client, tenant string, run v1.Run, diags *diag.Diagnostics) {
	if m.waits() {
		run = resourceWaiter.await(ctx, api, tenant, run, m.Accept, diags)
	}
	m.fromAPI(ctx, run, diags)
}

// Read reads the run. A server deletes old runs from its history; the state then
// keeps its last values.
func (r *Resource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	const operation = "Unable to read " + TypeName
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	state.identify(ctx, resp.Identity, &resp.Diagnostics)
	api := r.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	run, err := api.Run(ctx, state.Tenant.ValueString(), uint64(state.RunID.ValueInt64()))
	imported := tenantobject.TakeImported(ctx, resp.Private, &resp.Diagnostics)
	switch {
	case err == nil:
		state.fromAPI(ctx, run, &resp.Diagnostics)
		if imported {
			state.takeRequest(run)
		}
		resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
	case imported || !client.HasStatus(err, http.StatusNotFound):
		diagnostics.Failure{Operation: operation, Tenant: state.Tenant.ValueString(), Err: err}.Add(&resp.Diagnostics, nil)
	}
}

// Update starts no run. It follows a run whose end an interrupted apply did not see; else it
// changes the state only.
func (r *Resource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	const operation = "Unable to update " + TypeName
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	plan.identify(ctx, resp.Identity, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if plan.EndedAt.IsUnknown() {
		tenant, id := plan.Tenant.ValueString(), uint64(plan.RunID.ValueInt64())
		if !holdersOf(r.data, tenant).keep(id) {
			resp.Diagnostics.AddError(operation, explainShared(tenant, id))
			resp.Diagnostics.Append(resp.Private.SetKey(ctx, sharedKey, []byte("true"))...)
			return
		}
		limit := tenantobject.Timeout(plan.Timeouts, "create", createLimit)
		api := r.data.Client(&resp.Diagnostics, operation)
		if resp.Diagnostics.HasError() {
			return
		}
		waiting, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		run, err := api.Run(waiting, tenant, id)
		if err != nil {
			diagnostics.Failure{Operation: operation, Tenant: tenant, Err: err}.Add(&resp.Diagnostics, nil)
			return
		}
		plan.follow(waiting, api, tenant, run, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// Delete changes nothing on the server. It warns if the run has not ended.
func (r *Resource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || !state.EndedAt.IsNull() || !r.data.Reachable() {
		return
	}
	api := r.data.Client(&resp.Diagnostics, "Unable to delete "+TypeName)
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	run, err := api.Run(ctx, state.Tenant.ValueString(), uint64(state.RunID.ValueInt64()))
	if err == nil && !run.Finished() {
		resp.Diagnostics.AddAttributeWarning(path.Root("run_id"), "The run has not ended",
			fmt.Sprintf("Run %d of tenant %s is still in progress. Deleting %s does not end it.", run.ID, state.Tenant.ValueString(), TypeName))
	}
}

// ImportState imports by the id tenant/run_id, by run_id with the provider's tenant, or by
// the identity.
func (r *Resource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	asked := req.ID
	if asked == "" && req.Identity != nil {
		var named identity
		resp.Diagnostics.Append(req.Identity.Get(ctx, &named)...)
		asked = fmt.Sprintf("%s/%d", named.Tenant.ValueString(), named.RunID.ValueInt64())
	}
	tenant, id, err := parseID(asked)
	if err != nil {
		resp.Diagnostics.AddError("Unable to import "+TypeName, err.Error())
		return
	}
	named := types.StringPointerValue(tenant)
	if named = r.data.TenantOr(named); providerdata.NeedTenant(&resp.Diagnostics, named) == "" {
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("tenant"), named)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("run_id"), id)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{named, types.Int64Value(id)})...)
	tenantobject.MarkImported(ctx, resp.Private, &resp.Diagnostics)
}

// parseID parses an id; tenant is nil if the id does not contain one.
func parseID(text string) (tenant *string, id int64, err error) {
	number := text
	if before, after, found := strings.Cut(text, "/"); found {
		tenant, number = &before, after
		if !names.Valid(before) {
			return nil, 0, fmt.Errorf("%q is not the name of a tenant; use an id such as acme/41, or 41 with the provider's tenant", before)
		}
	}
	id, err = strconv.ParseInt(number, 10, 64)
	if err != nil || id <= 0 {
		return nil, 0, fmt.Errorf("%q is not the id of a run; use an id such as acme/41, or 41 with the provider's tenant", number)
	}
	return tenant, id, nil
}

// takeRequest sets the attributes with which an imported run was started, so
// that the same values in the configuration are no change.
func (m *model) takeRequest(r v1.Run) {
	m.Reason = conversion.Text(r.RequestReason)
	m.Environment, m.Until = conversion.Text(r.Environment), conversion.Text(r.Until)
	if r.RetryOf != 0 {
		m.RetryOf = types.Int64Value(int64(r.RetryOf))
	}
	if r.RollbackOf != 0 {
		m.RollbackOf = types.Int64Value(int64(r.RollbackOf))
	}
}
