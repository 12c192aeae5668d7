package tenantobject

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
)

// PlanLimit bounds what a plan asks of the server, so that an unreachable server
// does not hold up a plan.
const PlanLimit = 20 * time.Second

// ModifyPlan sets the tenant, refuses a second resource for the same object, finds what
// is in the way of the change, has the server validate it, and warns of its effect.
func (r *Resource[T, M, P]) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		r.planDeletion(ctx, req, resp)
		return
	}
	if r.data == nil {
		return
	}
	if r.kind.NamedBy == "" {
		r.data.PlanTenant(ctx, req, resp)
	}
	plan := P(new(M))
	resp.Diagnostics.Append(resp.Plan.Get(ctx, plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	exists := !req.State.Raw.IsNull()
	if exists {
		r.guard(ctx, req, resp, plan)
	}
	if plan.Shared().Tenant.IsUnknown() || nameOf(plan).IsUnknown() {
		return
	}
	r.claim(plan, req.Config.Raw.String(), exists, &resp.Diagnostics)
	if !exists {
		r.data.Remember(begun+r.kind.object(r.key(plan)), nil)
	}
	if resp.Plan.Raw.Equal(req.State.Raw) || !r.kind.known(resp.Plan.Raw) || resp.Diagnostics.HasError() {
		return
	}
	w := write[T]{
		kind: r.kind, at: r.key(plan), want: plan.ToAPI(ctx, &resp.Diagnostics), quiet: silenceOf(r.data),
		begin: !exists, overwrite: plan.Shared().OverwriteExisting.ValueBool(),
	}
	switch {
	case w.begin && !r.kind.renewed():
		KeepSuccessor(ctx, resp.Private, w.at.ID(), w.want, &resp.Diagnostics)
	case w.begin:
		w.ours = r.guardReplaced(ctx, w.at, &resp.Diagnostics)
	}
	change := Change[T]{At: w.at, Want: w.want}
	if exists {
		state := P(new(M))
		resp.Diagnostics.Append(req.State.Get(ctx, state)...)
		w.prior = state.ToAPI(ctx, &resp.Diagnostics)
		change.Prior = &w.prior
		if was := r.key(state); was != w.at {
			// The object of the old key goes first. The creation is planned by itself.
			r.warn(ctx, true, Change[T]{At: was, Prior: &w.prior, Deletion: true, Renamed: true}, &resp.Diagnostics)
			return
		}
		w.base = r.read(w.at, known(baseOf(ctx, req.Private, &resp.Diagnostics), w.prior, &resp.Diagnostics))
	}
	var state *tfsdk.State
	if exists {
		state = &req.State
	}
	secret := r.secretOf(ctx, req.Config, state, &resp.Diagnostics)
	w.renews = secret.ValueString() != ""
	ctx, cancel := context.WithTimeout(ctx, PlanLimit)
	defer cancel()
	answers := r.check(ctx, w, secret, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() && !r.planned() {
		r.warn(ctx, answers, change, &resp.Diagnostics)
	}
}

// managed begins the key of an object that a resource of the state manages.
const managed = "managed "

// guard refuses a change of an object, or its replacement by one of another key, after which
// nobody could undo it. It does not wait for what else is not known in the plan.
func (r *Resource[T, M, P]) guard(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, plan P) {
	if r.kind.Guard == nil && !r.kind.renewed() {
		return
	}
	diags := &resp.Diagnostics
	state := P(new(M))
	diags.Append(req.State.Get(ctx, state)...)
	prior := state.ToAPI(ctx, diags)
	was := r.key(state)
	r.data.Remember(managed+r.kind.object(was), prior)
	if r.kind.Guard == nil || resp.Plan.Raw.Equal(req.State.Raw) || diags.HasError() {
		return
	}
	change := Change[T]{At: was, Prior: &prior}
	if r.key(plan) != was {
		change.Deletion, change.Renamed = true, true
		r.refuse(ctx, change, diags)
		return
	}
	raw, err := withoutUnknown(resp.Plan.Raw, r.kind.Guard.By)
	if err != nil {
		return
	}
	known := P(new(M))
	diags.Append((&tfsdk.Plan{Schema: resp.Plan.Schema, Raw: raw}).Get(ctx, known)...)
	secret := r.secretOf(ctx, req.Config, &req.State, diags)
	change.Want, change.Renews = known.ToAPI(ctx, diags), !secret.IsNull() && !r.planned()
	r.refuse(ctx, change, diags)
}

// guardReplaced refuses a replacement by the same object after which nobody could undo it: the
// old object goes first. It reports whether the creation is that of a replacement.
func (r *Resource[T, M, P]) guardReplaced(ctx context.Context, at Key, diags *diag.Diagnostics) bool {
	if r.planned() {
		return false
	}
	prior, replaced := Recalled[T](r.data, r.kind.TypeName, at)
	if kept, ok := r.data.Recall(managed + r.kind.object(at)); ok && !replaced {
		prior, replaced = kept.(T)
	}
	if replaced {
		r.refuse(ctx, Change[T]{At: at, Prior: &prior, Deletion: true}, diags)
	}
	return replaced
}

// withoutUnknown returns a plan with null for each value that is not known. It fails if
// one of the attribute by is not known.
func withoutUnknown(plan tftypes.Value, by string) (tftypes.Value, error) {
	return tftypes.Transform(plan, func(at *tftypes.AttributePath, value tftypes.Value) (tftypes.Value, error) {
		switch steps := at.Steps(); {
		case value.IsKnown():
			return value, nil
		case len(steps) > 0 && steps[0] == tftypes.AttributeName(by):
			return value, errors.New(by + " is not known")
		default:
			return tftypes.NewValue(value.Type(), nil), nil
		}
	})
}

// refuse asks the guard of the kind.
func (r *Resource[T, M, P]) refuse(ctx context.Context, change Change[T], diags *diag.Diagnostics) {
	if r.kind.Guard != nil {
		r.ask(ctx, true, change, r.kind.Guard.Refuse, diags)
	}
}

// known reports whether all is known of a plan but what the server will give.
func (k Kind[T]) known(plan tftypes.Value) bool {
	var attributes map[string]tftypes.Value
	if err := plan.As(&attributes); err != nil {
		return false
	}
	for name, value := range attributes {
		if !value.IsFullyKnown() && !slices.Contains(k.Computed, name) {
			return false
		}
	}
	return true
}

// warn adds warnings about the effect of a change; answers is set if the server can be asked.
func (r *Resource[T, M, P]) warn(ctx context.Context, answers bool, change Change[T], diags *diag.Diagnostics) {
	if r.kind.Warn != nil {
		r.ask(ctx, answers, change, r.kind.Warn, diags)
	}
}

// ask has something look at a change, with the server if that can be asked.
func (r *Resource[T, M, P]) ask(ctx context.Context, answers bool, change Change[T], look func(context.Context, Change[T], *diag.Diagnostics), diags *diag.Diagnostics) {
	ctx, cancel := context.WithTimeout(ctx, PlanLimit)
	defer cancel()
	change.Data, change.Now = r.data, r.data.Now()
	if answers && r.data.Reachable() {
		change.API = r.data.Client(diags, "")
	}
	look(ctx, change, diags)
}

// planned reports whether what is planned now has been planned before: an apply plans again. A
// process that has written is one of an apply. Before that, an apply cannot be told from a
// plan, which may be one with -refresh=false, so the first changes of an apply are checked twice.
func (r *Resource[T, M, P]) planned() bool { return r.data.Applies() }

// Recalled returns the object of a resource as this process has read it, and whether it has.
func Recalled[T any](data *providerdata.Data, typeName string, at Key) (T, bool) {
	remembered, _ := data.Recall(Kind[T]{TypeName: typeName}.object(at))
	server, ok := remembered.(found[T])
	return server.Value, ok && server.exists
}

// read returns the object as this process has read it, or else as it was read for the state.
func (r *Resource[T, M, P]) read(at Key, state found[T]) found[T] {
	if remembered, ok := r.data.Recall(r.kind.object(at)); ok {
		server, _ := remembered.(found[T])
		return server
	}
	return state
}

// claim refuses a second resource that manages the same part of a tenant: the
// two would overwrite each other for ever.
func (r *Resource[T, M, P]) claim(plan P, configuration string, exists bool, diags *diag.Diagnostics) {
	tenant := plan.Shared().Tenant.ValueString()
	for what, at := range r.claims(plan) {
		if !r.data.Claim(tenant, what, configuration, exists) {
			diags.AddAttributeError(at, "Two resources manage "+what+" of one tenant",
				"Another "+r.kind.TypeName+" of this configuration also manages "+what+" of tenant "+tenant+
					", and each would undo the changes of the other. Remove it from one of them, or merge the two.")
		} else if rival := r.data.Rival(tenant, what); rival != "" {
			diags.AddAttributeError(at, "Two resources manage "+what+" of one tenant",
				"Another resource of this configuration manages one entry, "+rival+", of tenant "+tenant+
					", and this one would remove it. Move the entry into this list, or each entry of this list into a resource of its own.")
		}
	}
}

// claims returns the managed parts of a tenant, in words, with their attributes.
func (r *Resource[T, M, P]) claims(plan P) map[string]path.Path {
	if parts, ok := any(plan).(Claimant); ok {
		return parts.Claims()
	}
	if r.named() {
		return map[string]path.Path{"the " + r.kind.Noun + " " + nameOf(plan).ValueString(): path.Root("name")}
	}
	return map[string]path.Path{"the " + r.kind.Noun: r.tenantAttribute()}
}

// check finds what is in the way of a planned change, and has the server validate it.
// It reports whether the server answered. A refusal of the content and a conflict
// are errors; any other failure is a warning, because what is wrong may be mended before
// the apply.
func (r *Resource[T, M, P]) check(ctx context.Context, w write[T], secret types.String, diags *diag.Diagnostics) bool {
	if !r.data.Reachable() || secret.IsUnknown() || r.kind.NamedBy == "" && r.premature(w) || !r.data.ValidateAtPlan || diags.HasError() || r.planned() {
		return false
	}
	w.store = r.kind.withSecret(r.store(r.data.Client(diags, ""), w.at), secret)
	if w.begin {
		// What a replacement creates is still there.
		w.base = r.read(w.at, found[T]{})
	} else if _, err := w.decide(w.base); err != nil {
		r.kind.report(diags, "Unable to update "+r.kind.TypeName, w.at, err)
		return true
	}
	warnings, err := w.validate(ctx)
	_, refreshed := r.data.Recall(r.kind.object(w.at))
	if client.HasStatus(err, http.StatusPreconditionFailed) {
		if refreshed {
			return true // The apply will tell what has changed since the refresh.
		}
		warnings, err = r.compare(ctx, w, diags)
	}
	if err != nil {
		r.refusal(w.at, err, diags)
	}
	r.warnOfUnmatched(w.want, warnings, diags)
	return err == nil
}

// validate asks the server whether it would accept a write, and what of it matches no host.
func (w write[T]) validate(ctx context.Context) ([]v1.IntentWarning, error) {
	when := client.Precondition{IfMatch: w.base.ETag}
	if !w.base.exists {
		when = client.Precondition{IfNoneMatch: "*"}
	}
	return w.store.Validate(ctx, w.base.Stored, w.kind.Parts.Merged(w.want, w.base.Value), when)
}

// compare reads an object that is not what the plan took it for, and finds what is in the way.
func (r *Resource[T, M, P]) compare(ctx context.Context, w write[T], diags *diag.Diagnostics) ([]v1.IntentWarning, error) {
	stored, err := w.store.Get(ctx)
	if err != nil {
		return nil, err
	}
	w.base = found[T]{stored, true}
	r.data.Remember(existing+r.kind.object(w.at), nil)
	operation := "Unable to update " + r.kind.TypeName
	if w.begin {
		operation = "Unable to create " + r.kind.TypeName
	}
	done, err := w.decide(w.base)
	switch {
	case err != nil:
		r.kind.report(diags, operation, w.at, err)
	case w.begin:
		r.kind.warnOfAdoption(diags, w, w.base)
	case !done:
		return w.validate(ctx)
	}
	return nil, nil
}

// warnOfUnmatched adds what of the owned part matches no host that the server knows.
func (r *Resource[T, M, P]) warnOfUnmatched(want T, warnings []v1.IntentWarning, diags *diag.Diagnostics) {
	for _, w := range warnings {
		summary := cmp.Or(r.kind.Doubt, "No known host matches")
		if w.OfBudget() {
			summary = "A disruption budget limits upgrades"
		}
		member, _, _ := strings.Cut(strings.ReplaceAll(w.Field, "[", "."), ".")
		_, owned := Tree(want)[member]
		switch at, ok := r.kind.Locate(w.Field); {
		case ok && owned:
			diags.AddAttributeWarning(at, summary, "Attribute: "+diagnostics.Attribute(at)+"\nThe server says: "+diagnostics.HCL(w.Text))
		case w.Field == "":
			diags.AddWarning(summary, "The server says: "+w.Text)
		}
	}
}

// begun begins the key of an object that the plan creates.
const begun = "planned "

// tenantType is the type name of the resource of tenants.
const tenantType = "osupgrade_tenant"

// premature reports whether an object needs another one that the plan creates, its tenant for
// one. Until that is there, the server refuses the object.
func (r *Resource[T, M, P]) premature(w write[T]) bool {
	needs := []string{Needed(tenantType, Key{Tenant: w.at.Tenant})}
	if r.kind.Needs != nil {
		needs = append(needs, r.kind.Needs(w.want, w.at)...)
	}
	return slices.ContainsFunc(needs, func(object string) bool { return Planned(r.data, object) })
}

// Planned reports whether a plan of this process creates an object that Needed names.
func Planned(data *providerdata.Data, object string) bool {
	_, created := data.Recall(begun + object)
	return created
}

// Needed names an object of a resource for Kind.Needs.
func Needed(typeName string, at Key) string { return Kind[struct{}]{TypeName: typeName}.object(at) }

// refusal adds why the server does not accept a plan, or has not looked at it.
func (r *Resource[T, M, P]) refusal(at Key, err error, diags *diag.Diagnostics) {
	failure := diagnostics.Failure{Tenant: at.Tenant, NotFound: r.kind.NotFound, Err: err}
	switch {
	case client.Full(err):
		// The apply may delete another one. Terraform plans what is missing also before it plans
		// to destroy all.
		failure.Operation = "There is no room for another " + r.kind.Noun
		failure.Warn(diags, "The apply fails unless it deletes another one first.")
	case refused(err):
		failure.Operation = "The server would not accept " + r.kind.TypeName
		failure.Add(diags, r.kind.Locate)
	case client.HasStatus(err, http.StatusForbidden):
		failure.Operation = "The token may not write " + r.kind.TypeName
		failure.Warn(diags, "An apply with this token will fail. A plan with a token that may only read is possible with validate_at_plan = false on the provider.")
	default:
		failure.Operation = "Unable to have the server validate " + r.kind.TypeName
		failure.Warn(diags, "The server did not validate the plan; apply may still fail. "+
			"Set validate_at_plan = false on the provider to plan without validation.")
	}
}

// refused reports whether the server refused the content.
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

// planDeletion records what the plan deletes, and warns of the effect: of the one at once,
// if there is one, and else of the loss.
func (r *Resource[T, M, P]) planDeletion(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	state := P(new(M))
	resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	at := r.key(state)
	if server, ok := r.current(ctx, at, &resp.Diagnostics); ok {
		keepBase(ctx, resp.Private, snapshot{ETag: server.ETag, Body: server.Text()}, &resp.Diagnostics)
		keepContent(ctx, resp.Private, server.Value, &resp.Diagnostics)
		r.warn(ctx, true, Change[T]{At: at, Prior: &server.Value, Deletion: true}, &resp.Diagnostics)
		r.refuse(ctx, Change[T]{At: at, Prior: &server.Value, Deletion: true}, &resp.Diagnostics)
	}
	if summary, detail := state.Loss(at.Tenant); summary != "" && resp.Diagnostics.WarningsCount() == 0 {
		resp.Diagnostics.AddWarning(summary, detail)
	}
}

// current returns the object that the refresh has read, or reads it. If that fails, the
// deletion is based on the state.
func (r *Resource[T, M, P]) current(ctx context.Context, at Key, diags *diag.Diagnostics) (found[T], bool) {
	if !r.data.Reachable() {
		return found[T]{}, false
	}
	if remembered, ok := r.data.Recall(r.kind.object(at)); ok {
		server, ok := remembered.(found[T])
		return server, ok
	}
	ctx, cancel := context.WithTimeout(ctx, PlanLimit)
	defer cancel()
	api := r.data.Client(diags, "Unable to plan the deletion of "+r.kind.TypeName)
	server, err := r.store(api, at).Get(ctx)
	return found[T]{server, err == nil}, err == nil
}
