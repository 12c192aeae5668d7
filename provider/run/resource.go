package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/connection"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/privatestate"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/runwait"
)

// Create starts a run and waits for its end. A started run is always stored in
// the state, so that a failure leaves a tainted resource with the run's id.
func (r *Resource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	const operation = "Unable to create " + TypeName
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	plan.Tenant = r.connection.TenantOr(plan.Tenant)
	tenant := connection.NeedTenant(&resp.Diagnostics, plan.Tenant)
	limit, problems := plan.Timeouts.Create(ctx, plan.createLimit())
	resp.Diagnostics.Append(problems...)
	api := r.connection.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	run, err := begin(waiting, api, tenant, plan.start())
	if err != nil {
		diagnostic.Failure{Operation: operation, Tenant: tenant, Err: err}.Add(&resp.Diagnostics, diagnostic.Field)
		return
	}
	ended, err := follow(waiting, api, tenant, run)
	plan.fromAPI(ctx, ended, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	if err != nil {
		notFollowed(&resp.Diagnostics, tenant, run.ID, err)
		return
	}
	judge(tenant, ended, &resp.Diagnostics)
}

// begin starts a run. If another run is under way, it first waits for its end.
func begin(ctx context.Context, api *client.Client, tenant string, start v1.Start) (v1.Run, error) {
	for {
		run, err := api.Start(ctx, tenant, start)
		id := runwait.BlockingRun(err)
		if id == 0 {
			return run, err
		}
		if err := runwait.UntilUnblocked(ctx, api, tenant, id); err != nil {
			return v1.Run{}, err
		}
	}
}

// follow waits for the end of a run and logs each change. It returns the last
// known state of the run.
func follow(ctx context.Context, api *client.Client, tenant string, run v1.Run) (v1.Run, error) {
	var seen v1.Run
	logChanges := func(next v1.Run) {
		for _, line := range changes(seen, next) {
			tflog.Info(ctx, line)
		}
		seen = next
	}
	logChanges(run)
	_, err := runwait.ForRun(ctx, api, tenant, run.ID, logChanges)
	return seen, err
}

// notFollowed adds the error for a run of which the end is not known.
func notFollowed(diags *diag.Diagnostics, tenant string, id uint64, err error) {
	why := "it could not be followed: " + err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		why = "it did not end within timeouts.create"
	}
	diags.AddError("Unable to wait for the end of "+TypeName, fmt.Sprintf(
		"Run %d of tenant %s was started, but %s. The run itself may still be under way. "+
			"The resource is tainted: the next apply waits for the end of this run and then starts another. "+
			"If this run completes and no other is needed, use terraform untaint.", id, tenant, why))
}

// Read reads the run. A server deletes old runs from its history; the state then
// keeps its last values.
func (r *Resource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	const operation = "Unable to read " + TypeName
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	api := r.connection.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	run, err := api.Run(ctx, state.Tenant.ValueString(), uint64(state.RunID.ValueInt64()))
	imported := privatestate.TakeImported(ctx, resp.Private, &resp.Diagnostics)
	switch {
	case err == nil:
		state.fromAPI(ctx, run, &resp.Diagnostics)
		if imported {
			state.takeRequest(run)
		}
		resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
	case imported || !client.HasStatus(err, http.StatusNotFound):
		diagnostic.Failure{Operation: operation, Tenant: state.Tenant.ValueString(), Err: err}.Add(&resp.Diagnostics, nil)
	}
}

// Update changes the timeouts only; a change of any other attribute starts
// another run.
func (*Resource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// Delete changes nothing on the server. It warns if the run has not ended.
func (r *Resource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || !state.EndedAt.IsNull() || !r.connection.Reachable() {
		return
	}
	api := r.connection.Client(&resp.Diagnostics, "Unable to delete "+TypeName)
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	run, err := api.Run(ctx, state.Tenant.ValueString(), uint64(state.RunID.ValueInt64()))
	if err == nil && !run.Finished() {
		resp.Diagnostics.AddAttributeWarning(path.Root("run_id"), "The run has not ended",
			fmt.Sprintf("Run %d of tenant %s is still under way. Deleting %s does not end it.", run.ID, state.Tenant.ValueString(), TypeName))
	}
}

// ImportState imports tenant/run_id, or run_id with the provider's tenant.
func (r *Resource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	tenant, id, err := parseID(req.ID)
	if err != nil {
		resp.Diagnostics.AddError("Unable to import "+TypeName, err.Error())
		return
	}
	named := types.StringPointerValue(tenant)
	if named = r.connection.TenantOr(named); connection.NeedTenant(&resp.Diagnostics, named) == "" {
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("tenant"), named)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("run_id"), id)...)
	privatestate.MarkImported(ctx, resp.Private, &resp.Diagnostics)
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
	m.Reason = attribute.Text(r.RequestReason)
	if r.RetryOf != 0 {
		m.RetryOf = types.Int64Value(int64(r.RetryOf))
	}
}
