package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/connection"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/privatestate"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/wait"
)

// Create starts a run and waits for its end. A run that was started is in the
// state whatever becomes of it, so that a failure leaves a tainted resource
// that names it.
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
		lost(&resp.Diagnostics, tenant, run.ID, err)
		return
	}
	judge(tenant, ended, &resp.Diagnostics)
}

// begin starts a run, after the end of any other.
func begin(ctx context.Context, api *client.Client, tenant string, start v1.Start) (v1.Run, error) {
	for {
		run, err := api.Start(ctx, tenant, start)
		id := wait.InTheWay(err)
		if id == 0 {
			return run, err
		}
		if err := wait.UntilFree(ctx, api, tenant, id); err != nil {
			return v1.Run{}, err
		}
	}
}

// follow returns the run as it was last heard of, and logs each change.
func follow(ctx context.Context, api *client.Client, tenant string, run v1.Run) (v1.Run, error) {
	var seen v1.Run
	tell := func(next v1.Run) {
		for _, line := range changes(seen, next) {
			tflog.Info(ctx, line)
		}
		seen = next
	}
	tell(run)
	_, err := wait.ForRun(ctx, api, tenant, run.ID, tell)
	return seen, err
}

// lost tells that the run goes on without us.
func lost(diags *diag.Diagnostics, tenant string, id uint64, err error) {
	why := "it could not be followed: " + err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		why = "it did not end within timeouts.create"
	}
	diags.AddError("Unable to wait for the end of "+TypeName, fmt.Sprintf(
		"Run %d of tenant %s was started, but %s. It is not ended by this: it may still be going on. "+
			"The resource is tainted; the next apply waits for that run and then starts another. "+
			"If it ends well and that is enough, use terraform untaint.", id, tenant, why))
}

// Read takes over what has become of the run. A server keeps old runs for a
// while only; one that is not kept any more stays as it was.
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

// Update changes the limits of the resource only; everything else starts
// another run.
func (*Resource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// Delete changes nothing on the server. It warns of a run that goes on.
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
		resp.Diagnostics.AddAttributeWarning(path.Root("run_id"), "The run goes on",
			fmt.Sprintf("Run %d of tenant %s has not ended. Deleting %s does not end it.", run.ID, state.Tenant.ValueString(), TypeName))
	}
}
