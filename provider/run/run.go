// Package run is the resource osupgrade_run, which starts a run when its triggers
// change and waits for the end of the run, unless it has wait = false.
//
// It decides which results fail the apply. It never ends, pauses or undoes a
// run; deleting the resource changes nothing on the server.
package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/environment"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/rollout"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/wayback"
)

// TypeName is the type name of the resource.
const TypeName = "osupgrade_run"

// createLimit is the default timeout of the creation. It suits a CI job of an hour.
const createLimit = 50 * time.Minute

// preflightLimit bounds the question to the server whether a run could start.
const preflightLimit = 20 * time.Second

// readLimit bounds the read of a run, which is one small object.
const readLimit = 5 * time.Minute

// Resource is osupgrade_run.
type Resource struct {
	data *providerdata.Data
}

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithIdentity       = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

// New returns the resource.
func New() resource.Resource { return &Resource{} }

// Metadata sets the type name.
func (*Resource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = TypeName
}

// Configure gets the connection from the provider.
func (r *Resource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.data = providerdata.From(req.ProviderData, &resp.Diagnostics)
}

// identity is the resource's identity.
type identity struct {
	Tenant types.String `tfsdk:"tenant"`
	RunID  types.Int64  `tfsdk:"run_id"`
}

// IdentitySchema declares the tenant and the id of the run.
func (*Resource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"tenant": identityschema.StringAttribute{RequiredForImport: true, Description: "The tenant whose hosts the run upgrades."},
		"run_id": identityschema.Int64Attribute{RequiredForImport: true, Description: "The id of the run."},
	}}
}

func (m *model) identify(ctx context.Context, to *tfsdk.ResourceIdentity, diags *diag.Diagnostics) {
	diags.Append(to.Set(ctx, identity{m.Tenant, m.RunID})...)
}

// ModifyPlan sets the tenant, plans to follow a run whose end an interrupted apply did not
// see, and warns if a run could not start now.
func (r *Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || r.data == nil {
		return
	}
	r.data.PlanTenant(ctx, req, resp)
	var plan model
	resp.Diagnostics.Append(resp.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if !req.State.Raw.IsNull() {
		r.planExisting(ctx, plan, req, resp)
		return
	}
	preflight(ctx, r.data, TypeName, plan.request, &resp.Diagnostics)
}

// planExisting plans to follow a run that has not ended, or to replace a resource whose run
// another one has taken over.
func (r *Resource) planExisting(ctx context.Context, plan model, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	shared, problems := req.Private.GetKey(ctx, sharedKey)
	resp.Diagnostics.Append(problems...)
	var ended types.String
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("ended_at"), &ended)...)
	switch {
	case len(shared) > 0:
		plan.RunID, plan.OpenedAt = types.Int64Unknown(), types.StringUnknown()
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root("run_id"))
	case len(resp.RequiresReplace) > 0 || !ended.IsNull():
		return
	case plan.Wait.IsUnknown():
	case !plan.waits():
		plan.notEnded()
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
		return
	default:
		holdersOf(r.data, plan.Tenant.ValueString()).keep(uint64(plan.RunID.ValueInt64()))
	}
	plan.Result, plan.EndedAt, plan.Hosts, plan.WayBack = types.StringUnknown(), types.StringUnknown(), types.ListUnknown(hostType()), types.ObjectUnknown(wayback.Types())
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// preflight warns if the server says that the run could not start now. By the time of the
// apply a window may have opened.
func preflight(ctx context.Context, data *providerdata.Data, typeName string, m request, diags *diag.Diagnostics) {
	if !data.Reachable() || !data.ValidateAtPlan || m.Tenant.IsUnknown() ||
		m.Environment.IsUnknown() || m.OverrideAfter.IsUnknown() || m.OverrideWindow.IsUnknown() || m.Reason.IsUnknown() || m.Duration.IsUnknown() || m.RetryOf.IsUnknown() || m.RollbackOf.IsUnknown() || m.Until.IsUnknown() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, preflightLimit)
	defer cancel()
	tenant, api := m.Tenant.ValueString(), data.Client(diags, "")
	if tenantobject.Planned(data, tenantobject.Needed(environment.TypeName, tenantobject.Key{Tenant: tenant, Name: m.Environment.ValueString()})) {
		return // The server does not know it yet.
	}
	if !hasRun(ctx, api, tenant, "retry_of", "There is no run to retry", m.RetryOf, diags) || !hasRun(ctx, api, tenant, "rollback_of", "There is no run to roll back", m.RollbackOf, diags) {
		return
	}
	found, err := api.Preflight(ctx, tenant, m.start())
	switch {
	case client.HasStatus(err, http.StatusForbidden):
		diagnostics.Failure{Operation: "The token may not start " + typeName, Tenant: tenant, Err: err}.Warn(diags, "An apply with this token will fail.")
	case client.HasStatus(err, http.StatusConflict), client.HasStatus(err, http.StatusNotFound) && m.Environment.ValueString() != "":
		diagnostics.Failure{Operation: "A run could not start now", Tenant: tenant, Err: err}.Warn(diags, "If this is still so at the apply, the apply fails.")
	case noStage(err) && !tenantobject.Planned(data, tenantobject.Needed(rollout.TypeName, tenantobject.Key{Tenant: tenant})):
		diags.AddAttributeWarning(path.Root("until"), "There is no such stage", "If this is still so at the apply, the apply fails. The server says: "+diagnostics.HCL(err.Error()))
	case err == nil && found.Refused != "":
		diags.AddWarning("A run could not start now", "If this is still so at the apply, the apply fails or waits for the run in progress. The server says: "+diagnostics.HCL(found.Refused))
	}
	if w := found.SkippedWindow; err == nil && w != nil {
		diags.AddWarning("Somebody has skipped the window", fmt.Sprintf("The window that opens at %s was skipped by %s: %s. It opens no run by itself, but this starts one in it.", w.Start.Format(time.RFC3339), w.By, w.Reason))
	}
}

// hasRun adds an error if the server does not have the run that an attribute names.
func hasRun(ctx context.Context, api *client.Client, tenant, attribute, summary string, named types.Int64, diags *diag.Diagnostics) bool {
	id := named.ValueInt64()
	if id == 0 {
		return true
	}
	_, err := api.Run(ctx, tenant, uint64(id))
	if client.Missing(err) {
		diags.AddAttributeError(path.Root(attribute), summary, fmt.Sprintf(
			"Tenant %s has no run %d, or the server has deleted it from its history. Use the id of a run that has ended, as osupgrade-agent runs shows them.", tenant, id))
		return false
	}
	return true
}

// noStage reports whether the server refuses a start because the rollout has no stage of that name.
func noStage(err error) bool {
	var answer *client.Error
	return errors.As(err, &answer) && answer.Status == http.StatusBadRequest && answer.Errors[0].Info.Field == "until"
}

// ValidateConfig applies the API's rules for a start.
func (*Resource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	m.validate(TypeName, &resp.Diagnostics)
	if !m.Accept.IsNull() && !m.Wait.IsUnknown() && !m.waits() {
		resp.Diagnostics.AddAttributeError(path.Root("accept"), "Invalid configuration of "+TypeName,
			"accept lists the results with which an apply succeeds, but with wait = false it does not see the result. Remove accept or wait = false.")
	}
}

// validate applies the API's rules for a start. The rules concern several attributes
// together, so it waits until all of them are known.
func (m request) validate(typeName string, diags *diag.Diagnostics) {
	if m.chosen() && m.Until.ValueString() != "" {
		diags.AddAttributeError(path.Root("until"), "Invalid configuration of "+typeName,
			"until ends a run of all hosts of its environment. Remove until, or host_names, labels, roles and retry_of.")
	}
	if !m.Environment.IsUnknown() && !m.OverrideAfter.IsUnknown() && !m.OverrideWindow.IsUnknown() && !m.Reason.IsUnknown() && !m.Duration.IsUnknown() && !m.RollbackOf.IsUnknown() {
		start := m.start()
		start.Hosts, start.Labels, start.Roles, start.Until = nil, nil, nil, "" // Their attributes have rules of their own.
		invalid(typeName, start.Validate(), diags)
	}
}

// chosen reports whether the configuration chooses the hosts of the run.
func (m request) chosen() bool {
	return !m.HostNames.IsNull() || !m.Labels.IsNull() || !m.Roles.IsNull() || !m.RetryOf.IsNull()
}

// invalid adds the problems of a request at their attributes.
func invalid(typeName string, problems v1.Problems, diags *diag.Diagnostics) {
	for _, problem := range problems {
		at, ok := diagnostics.Field(problem.Field)
		if !ok {
			at = path.Empty()
		}
		diags.AddAttributeError(at, "Invalid configuration of "+typeName, diagnostics.HCL(problem.Message))
	}
}
