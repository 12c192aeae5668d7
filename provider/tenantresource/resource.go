package tenantresource

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/connection"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/privatestate"
)

// Create starts to manage the attributes of the plan. It adopts an existing
// object if that is empty or equal, and fails otherwise.
func (r *Resource[T, M, P]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	operation := "Unable to create " + r.kind.TypeName
	plan := P(new(M))
	resp.Diagnostics.Append(req.Plan.Get(ctx, plan)...)
	common := plan.Shared()
	common.Tenant = r.connection.TenantOr(common.Tenant)
	r.identify(ctx, resp.Identity, plan, &resp.Diagnostics)
	connection.NeedTenant(&resp.Diagnostics, common.Tenant)
	at := r.key(plan)
	limit, problems := common.Timeouts.Create(ctx, createLimit)
	resp.Diagnostics.Append(problems...)
	want := plan.ToAPI(ctx, &resp.Diagnostics)
	api := r.connection.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	change := write[T]{kind: r.kind, api: api, at: at, want: want, begin: true, overwrite: common.OverwriteExisting.ValueBool()}
	etag, err := change.do(ctx)
	if err != nil {
		r.kind.report(&resp.Diagnostics, operation, at, err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	privatestate.KeepETag(ctx, resp.Private, change.readBack(ctx, etag, &resp.Diagnostics), &resp.Diagnostics)
}

// Read sets the managed attributes to the server's content.
func (r *Resource[T, M, P]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	operation := "Unable to read " + r.kind.TypeName
	state := P(new(M))
	resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	common := state.Shared()
	r.identify(ctx, resp.Identity, state, &resp.Diagnostics)
	limit, problems := common.Timeouts.Read(ctx, readLimit)
	resp.Diagnostics.Append(problems...)
	api := r.connection.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	at := r.key(state)
	server, err := r.kind.Object(at).Get(ctx, api, at.Tenant)
	switch {
	case err == nil:
	case r.kind.removed(ctx, api, at, err):
		resp.State.RemoveResource(ctx)
		return
	default:
		r.kind.report(&resp.Diagnostics, operation, at, err)
		return
	}
	state.FromAPI(ctx, server.Value, privatestate.TakeImported(ctx, resp.Private, &resp.Diagnostics), &resp.Diagnostics)
	privatestate.KeepETag(ctx, resp.Private, base(server), &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// Update writes the plan unless somebody else has changed the object since the
// plan was made.
func (r *Resource[T, M, P]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	operation := "Unable to update " + r.kind.TypeName
	state, plan := P(new(M)), P(new(M))
	resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, plan)...)
	common := plan.Shared()
	common.Tenant = state.Shared().Tenant
	r.identify(ctx, resp.Identity, plan, &resp.Diagnostics)
	limit, problems := common.Timeouts.Update(ctx, updateLimit)
	resp.Diagnostics.Append(problems...)
	change := write[T]{
		kind: r.kind, at: r.key(plan),
		prior: state.ToAPI(ctx, &resp.Diagnostics), want: plan.ToAPI(ctx, &resp.Diagnostics),
		etag: privatestate.ETag(ctx, req.Private, &resp.Diagnostics), overwrite: common.OverwriteExisting.ValueBool(),
	}
	change.api = r.connection.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	if r.kind.Unchanged(change.prior, change.want) {
		resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	etag, err := change.do(ctx)
	if err != nil {
		r.kind.report(&resp.Diagnostics, operation, change.at, err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	privatestate.KeepETag(ctx, resp.Private, change.readBack(ctx, etag, &resp.Diagnostics), &resp.Diagnostics)
}

// Delete empties the owned part and deletes the object if nothing is left.
func (r *Resource[T, M, P]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	operation := "Unable to delete " + r.kind.TypeName
	state := P(new(M))
	resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	limit, problems := state.Shared().Timeouts.Delete(ctx, deleteLimit)
	resp.Diagnostics.Append(problems...)
	owned := state.ToAPI(ctx, &resp.Diagnostics)
	change := write[T]{
		kind: r.kind, at: r.key(state), want: r.kind.Emptied(owned),
		prior: r.kind.Restricted(privatestate.Content(ctx, req.Private, owned, &resp.Diagnostics), owned),
		etag:  privatestate.ETag(ctx, req.Private, &resp.Diagnostics), remove: true,
	}
	change.api = r.connection.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := change.do(ctx); err != nil {
		r.kind.report(&resp.Diagnostics, operation, change.at, err)
	}
}

// readBack reads the object after a write. If the server has other content, it
// returns the ETag of the write, so that the next plan shows the difference.
func (w write[T]) readBack(ctx context.Context, etag string, diags *diag.Diagnostics) string {
	server, err := w.read(ctx)
	switch {
	case err != nil:
		diags.AddWarning("The "+w.kind.Noun+" could not be read back",
			"The write succeeded, but the read after it failed: "+err.Error()+"\n\nThe next plan reads it again.")
	case !w.kind.InSync(w.want, server.Value):
		diags.AddWarning("The server's "+w.kind.Noun+" differs from what was written",
			"Somebody else or the server may have changed it in the meantime. The next plan shows the difference.")
	default:
		return base(server.Stored)
	}
	return etag
}

// base returns the ETag that the next change of an object may be based on without
// another read; empty if it must read first, to keep members that the provider does
// not know.
func base[T any](server client.Stored[T]) string {
	if server.HasUnknown() {
		return ""
	}
	return server.ETag
}
