package config

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/connection"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/private"
)

// Create begins to manage the lists of the plan. Lists that are there already
// are adopted when they are empty or equal, and otherwise refused.
func (r *Resource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	const operation = "Unable to create " + TypeName
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	plan.Tenant = r.connection.TenantOr(plan.Tenant)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{plan.Tenant})...)
	tenant := connection.NeedTenant(&resp.Diagnostics, plan.Tenant)
	limit, problems := plan.Timeouts.Create(ctx, createLimit)
	resp.Diagnostics.Append(problems...)
	want := plan.toAPI(ctx, &resp.Diagnostics)
	api := r.connection.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	change := write{api: api, tenant: tenant, want: want, overwrite: plan.OverwriteExisting.ValueBool()}
	etag, err := change.do(ctx)
	if err != nil {
		report(&resp.Diagnostics, operation, tenant, err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	private.KeepETag(ctx, resp.Private, change.readBack(ctx, etag, &resp.Diagnostics), &resp.Diagnostics)
}

// Read takes over what the server has in the lists that are managed.
func (r *Resource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	const operation = "Unable to read " + TypeName
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{state.Tenant})...)
	limit, problems := state.Timeouts.Read(ctx, readLimit)
	resp.Diagnostics.Append(problems...)
	api := r.connection.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tenant := state.Tenant.ValueString()
	server, etag, err := api.Config(ctx, tenant)
	switch {
	case err == nil:
	case gone(ctx, api, tenant, err):
		resp.State.RemoveResource(ctx)
		return
	default:
		report(&resp.Diagnostics, operation, tenant, err)
		return
	}
	state.fromAPI(ctx, server, private.TakeImported(ctx, resp.Private, &resp.Diagnostics), &resp.Diagnostics)
	private.KeepETag(ctx, resp.Private, etag, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// Update writes the lists of the plan, unless somebody else has changed them
// since it was made.
func (r *Resource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	const operation = "Unable to update " + TypeName
	var state, plan model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	plan.Tenant = state.Tenant
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{plan.Tenant})...)
	limit, problems := plan.Timeouts.Update(ctx, updateLimit)
	resp.Diagnostics.Append(problems...)
	change := write{
		tenant: plan.Tenant.ValueString(),
		prior:  state.toAPI(ctx, &resp.Diagnostics), want: plan.toAPI(ctx, &resp.Diagnostics),
		etag: private.ETag(ctx, req.Private, &resp.Diagnostics), overwrite: plan.OverwriteExisting.ValueBool(),
	}
	change.api = r.connection.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	if unchanged(change.prior, change.want) {
		resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	etag, err := change.do(ctx)
	if err != nil {
		report(&resp.Diagnostics, operation, change.tenant, err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	private.KeepETag(ctx, resp.Private, change.readBack(ctx, etag, &resp.Diagnostics), &resp.Diagnostics)
}

// Delete empties the lists that are managed, and removes the configuration
// when nothing is left in it.
func (r *Resource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	const operation = "Unable to delete " + TypeName
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	limit, problems := state.Timeouts.Delete(ctx, deleteLimit)
	resp.Diagnostics.Append(problems...)
	owned := state.toAPI(ctx, &resp.Diagnostics)
	change := write{
		tenant: state.Tenant.ValueString(), want: emptied(owned),
		prior: restricted(private.Content(ctx, req.Private, owned, &resp.Diagnostics), owned),
		etag:  private.ETag(ctx, req.Private, &resp.Diagnostics), remove: true,
	}
	change.api = r.connection.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := change.do(ctx); err != nil {
		report(&resp.Diagnostics, operation, change.tenant, err)
	}
}

// identity is the resource's identity. It is set first of all in every
// operation: without it a CLI that knows none fails after the write
// (terraform.md 2.3).
type identity struct {
	Tenant types.String `tfsdk:"tenant"`
}

// readBack reads what was written. When the server has something else, the
// ETag of the write is kept, so that the next plan sees the difference.
func (w write) readBack(ctx context.Context, etag string, diags *diag.Diagnostics) string {
	server, err := w.read(ctx)
	switch {
	case err != nil:
		diags.AddWarning("The configuration could not be read back",
			"It was written, but reading it afterwards failed: "+err.Error()+"\n\nThe next plan reads it again.")
	case !settled(w.want, server.config):
		diags.AddWarning("The server has another configuration than was written",
			"Somebody else may have changed it at once, or the server may have changed it. The next plan shows the difference.")
	default:
		return server.etag
	}
	return etag
}
