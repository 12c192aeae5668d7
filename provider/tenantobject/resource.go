package tenantobject

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
)

// Create starts to manage the attributes of the plan. It adopts an existing
// object if that is empty or equal, and fails otherwise. The plan has warned of one that is
// equal: it may be the outcome of a write whose answer was lost.
func (r *Resource[T, M, P]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	operation := "Unable to create " + r.kind.TypeName
	plan := P(new(M))
	resp.Diagnostics.Append(req.Plan.Get(ctx, plan)...)
	common := plan.Shared()
	common.Tenant = r.data.TenantOr(common.Tenant)
	r.identify(ctx, resp.Identity, plan, &resp.Diagnostics)
	providerdata.NeedTenant(&resp.Diagnostics, common.Tenant)
	at := r.key(plan)
	limit := Timeout(common.Timeouts, "create", createLimit)
	want := plan.ToAPI(ctx, &resp.Diagnostics)
	api := r.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	end, err := r.turn(ctx, at)
	if err != nil {
		r.kind.report(&resp.Diagnostics, operation, at, err)
		return
	}
	defer end()
	object, err := r.creatable(ctx, api, at, plan)
	if err != nil {
		r.kind.report(&resp.Diagnostics, operation, at, err)
		return
	}
	change := r.write(object, at, r.secretOf(ctx, req.Config, nil, &resp.Diagnostics))
	change.want, change.begin, change.overwrite = want, true, common.OverwriteExisting.ValueBool()
	_, there := r.data.Recall(existing + r.kind.object(at))
	change.absent = r.data.ValidateAtPlan && !there
	r.beside(api, at, func(b Beside[T]) { b.HoldAll(want) })
	written, err := roomy(ctx, r.removals(at.Tenant), change.do)
	if err != nil {
		r.kind.report(&resp.Diagnostics, operation, at, err)
		return
	}
	r.keepMade(ctx, resp.Private, at, want, &resp.Diagnostics)
	r.completeWritten(ctx, api, at, plan, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	keepBase(ctx, resp.Private, r.kind.base(change.readBack(ctx, written, &resp.Diagnostics), want), &resp.Diagnostics)
}

// Read sets the managed attributes to the server's content.
func (r *Resource[T, M, P]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	operation := "Unable to read " + r.kind.TypeName
	state := P(new(M))
	resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	common := state.Shared()
	r.identify(ctx, resp.Identity, state, &resp.Diagnostics)
	limit := Timeout(common.Timeouts, "read", readLimit)
	api := r.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	at := r.key(state)
	store := r.store(api, at)
	server, err := refresh(ctx, store)
	switch {
	case err == nil:
	case removed(ctx, store, err):
		resp.State.RemoveResource(ctx)
		return
	default:
		r.kind.report(&resp.Diagnostics, operation, at, err)
		return
	}
	state.FromAPI(ctx, server.Value, TakeImported(ctx, resp.Private, &resp.Diagnostics), &resp.Diagnostics)
	r.complete(ctx, api, at, state, operation, &resp.Diagnostics)
	r.data.Remember(r.kind.object(at), found[T]{server, true})
	owned := state.ToAPI(ctx, &resp.Diagnostics)
	r.beside(api, at, func(b Beside[T]) { b.OwnAll(owned) })
	keepBase(ctx, resp.Private, r.kind.base(server, owned), &resp.Diagnostics)
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
	limit := Timeout(common.Timeouts, "update", updateLimit)
	api := r.data.Client(&resp.Diagnostics, operation)
	at := r.key(plan)
	change := r.write(r.store(api, at), at, r.secretOf(ctx, req.Config, &req.State, &resp.Diagnostics))
	change.prior, change.want = state.ToAPI(ctx, &resp.Diagnostics), plan.ToAPI(ctx, &resp.Diagnostics)
	change.overwrite = common.OverwriteExisting.ValueBool()
	change.base = known(baseOf(ctx, req.Private, &resp.Diagnostics), change.prior, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	r.beside(api, change.at, func(b Beside[T]) { b.HoldAll(change.want) })
	if r.kind.Parts.Unchanged(change.prior, change.want) && !change.renews {
		resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	written, err := change.do(ctx)
	if err != nil {
		r.kind.report(&resp.Diagnostics, operation, change.at, err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	keepBase(ctx, resp.Private, r.kind.base(change.readBack(ctx, written, &resp.Diagnostics), change.want), &resp.Diagnostics)
}

// Delete empties the owned part and deletes the object if nothing is left. Before a
// replacement by the same object it writes what that wants instead, unless that begins anew: so
// nothing is missing in between, and the creation finds its content. After it, nothing is left
// to do.
func (r *Resource[T, M, P]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	operation := "Unable to delete " + r.kind.TypeName
	state := P(new(M))
	resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	limit := Timeout(state.Shared().Timeouts, "delete", deleteLimit)
	owned := state.ToAPI(ctx, &resp.Diagnostics)
	api := r.data.Client(&resp.Diagnostics, operation)
	at := r.key(state)
	change := r.write(r.deletable(api, at, state), at, types.StringNull())
	change.prior = r.kind.Parts.Restricted(contentOf(ctx, req.Private, owned, &resp.Diagnostics), owned)
	change.want, change.remove = r.kind.Parts.Emptied(owned), true
	if next, replaced := SuccessorOf[T](ctx, req.Private, change.at.ID(), &resp.Diagnostics); replaced {
		change.want, change.remove = next, false
	}
	change.base = known(baseOf(ctx, req.Private, &resp.Diagnostics), change.prior, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	end, err := r.turn(ctx, at)
	if err != nil {
		r.kind.report(&resp.Diagnostics, operation, at, err)
		return
	}
	defer end()
	if next, created := r.madeByOther(ctx, req.Private, at, &resp.Diagnostics); created {
		change.want, change.remove, change.base = r.kind.Parts.Merged(next, change.want), false, found[T]{}
		r.kind.warnOfKept(&resp.Diagnostics, at)
	}
	if change.remove {
		r.beside(api, change.at, func(b Beside[T]) { change.want = b.Left(ctx, owned, change.want) })
	}
	removed := r.removals(at.Tenant).begin()
	left, err := change.do(ctx)
	removed()
	if err != nil {
		r.kind.report(&resp.Diagnostics, operation, change.at, err)
	} else if left.exists {
		r.data.Remember(r.kind.object(change.at), left)
	}
}

// write returns a change of an object, with a secret if it is to be sent.
func (r *Resource[T, M, P]) write(object store[T], at Key, secret types.String) write[T] {
	r.data.Apply()
	store := r.kind.withSecret(object, secret)
	return write[T]{kind: r.kind, at: at, store: store, quiet: silenceOf(r.data), renews: secret.ValueString() != ""}
}

// readBack returns the object after a write. It reads the object only if the server sent
// no ETag, which would be that of exactly what was written. If the server has other
// content, the next plan shows the difference.
func (w write[T]) readBack(ctx context.Context, written found[T], diags *diag.Diagnostics) client.Stored[T] {
	if written.ETag != "" {
		return written.Stored
	}
	server, err := look(ctx, w.store, w.quiet)
	switch {
	case err != nil:
		diags.AddWarning("The "+w.kind.Noun+" could not be read back",
			"The write succeeded, but the read after it failed: "+err.Error()+"\n\nThe next plan reads it again.")
	case !w.kind.Parts.InSync(w.want, server.Value):
		diags.AddWarning("The server's "+w.kind.Noun+" differs from what was written",
			"Somebody else or the server may have changed it in the meantime. The next plan shows the difference.")
	}
	return server.Stored
}

// existing is what an object is remembered with of which a plan in this process has found out
// that a creation meets it.
const existing = "existing "

// object names an object among those that are remembered.
func (k Kind[T]) object(at Key) string { return k.TypeName + " " + at.ID() }

// base returns what the next change of an object is based on. The text of the object is
// kept only if the state does not have all of it.
func (k Kind[T]) base(server client.Stored[T], owned T) snapshot {
	base := snapshot{ETag: server.ETag}
	if !k.Parts.OwnsAll(owned) || server.HasUnknown() {
		base.Body = server.Text()
	}
	return base
}

// known returns the object that a base describes. One without text is what the resource
// owned.
func known[T any](base snapshot, owned T, diags *diag.Diagnostics) found[T] {
	if len(base.Body) == 0 {
		return found[T]{client.Stored[T]{Value: owned, ETag: base.ETag}, base.ETag != ""}
	}
	stored, err := client.NewStored[T](base.ETag, base.Body)
	if err != nil {
		diags.AddError("Unable to read private state", err.Error())
	}
	return found[T]{stored, true}
}
