package tenantresource

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/privatestate"
)

// dryRunLimit bounds the validation by the server, so that an unreachable server
// does not hold up a plan.
const dryRunLimit = 20 * time.Second

// ModifyPlan sets the tenant, refuses a second resource for the same object, has
// the server validate the plan, and warns of its effect.
func (r *Resource[T, M, P]) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		r.planDeletion(ctx, req, resp)
		return
	}
	if r.connection == nil {
		return
	}
	r.connection.PlanTenant(ctx, req, resp)
	plan := P(new(M))
	resp.Diagnostics.Append(resp.Plan.Get(ctx, plan)...)
	if resp.Diagnostics.HasError() || plan.Shared().Tenant.IsUnknown() || nameOf(plan).IsUnknown() {
		return
	}
	r.claim(plan, req.Config.Raw.String(), &resp.Diagnostics)
	if !resp.Plan.Raw.Equal(req.State.Raw) && resp.Plan.Raw.IsFullyKnown() {
		answered := r.dryRun(ctx, plan, &resp.Diagnostics)
		r.warn(ctx, plan, answered, &resp.Diagnostics)
	}
}

// warn adds the kind's warnings to a plan without errors. It does without a
// server that did not answer before.
func (r *Resource[T, M, P]) warn(ctx context.Context, plan P, answered bool, diags *diag.Diagnostics) {
	if r.kind.Warn == nil || diags.HasError() {
		return
	}
	var misfits diag.Diagnostics
	want := plan.ToAPI(ctx, &misfits)
	var api *client.Client
	if answered {
		api = r.connection.Client(&misfits, "")
	}
	if misfits.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dryRunLimit)
	defer cancel()
	r.kind.Warn(ctx, api, r.connection.Now(), r.key(plan), want, diags)
}

// claim refuses a second resource that manages the same part of a tenant: the
// two would overwrite each other for ever.
func (r *Resource[T, M, P]) claim(plan P, configuration string, diags *diag.Diagnostics) {
	tenant := plan.Shared().Tenant.ValueString()
	for what, at := range plan.Claims() {
		if !r.connection.Claim(tenant, what, configuration) {
			diags.AddAttributeError(at, "Two resources manage "+what+" of one tenant",
				"Another "+r.kind.TypeName+" of this configuration also manages "+what+" of tenant "+tenant+
					", and each would undo the changes of the other. Remove it from one of them, or merge the two.")
		}
	}
}

// dryRun has the server validate the plan (AV-8) and reports whether the server
// accepted it. A refusal is an error; any other failure is a warning.
func (r *Resource[T, M, P]) dryRun(ctx context.Context, plan P, diags *diag.Diagnostics) bool {
	if !r.connection.Reachable() || !r.connection.ValidateAtPlan || diags.HasError() {
		return false
	}
	failure := diagnostic.Failure{
		Operation: "The server would not accept " + r.kind.TypeName, Tenant: plan.Shared().Tenant.ValueString(), NotFound: r.kind.NotFound,
	}
	want := plan.ToAPI(ctx, diags)
	ctx, cancel := context.WithTimeout(ctx, dryRunLimit)
	defer cancel()
	at := r.key(plan)
	api := r.connection.Client(diags, failure.Operation)
	failure.Err = r.kind.Object(at).Validate(ctx, api, at.Tenant, client.Stored[T]{}, want, client.Precondition{})
	switch {
	case failure.Err == nil:
	case refused(failure.Err):
		failure.Add(diags, r.kind.Locate)
	default:
		failure.Operation = "Unable to have the server validate " + r.kind.TypeName
		failure.Warn(diags, "The server did not validate the plan; apply may still fail. "+
			"Set validate_at_plan = false on the provider to plan without validation.")
	}
	return failure.Err == nil
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

// planDeletion records what the plan deletes, and warns of the effect.
func (r *Resource[T, M, P]) planDeletion(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	state := P(new(M))
	resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	tenant := state.Shared().Tenant.ValueString()
	if r.connection.Reachable() {
		ctx, cancel := context.WithTimeout(ctx, dryRunLimit)
		defer cancel()
		api := r.connection.Client(&resp.Diagnostics, "Unable to plan the deletion of "+r.kind.TypeName)
		// If this fails, the deletion is based on the state.
		if server, err := r.kind.Object(r.key(state)).Get(ctx, api, tenant); err == nil {
			privatestate.KeepETag(ctx, resp.Private, base(server), &resp.Diagnostics)
			privatestate.KeepContent(ctx, resp.Private, server.Value, &resp.Diagnostics)
		}
	}
	if summary, detail := state.Loss(tenant); summary != "" {
		resp.Diagnostics.AddWarning(summary, detail)
	}
}
