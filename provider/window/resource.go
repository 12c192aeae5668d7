package window

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// TypeName is the type name of the resource.
const TypeName = "osupgrade_maintenance_window"

// list is the attribute of osupgrade_config that has all windows.
const list = "maintenance_windows"

// limit is the usual timeout of each operation.
const limit = 10 * time.Minute

// Resource is osupgrade_maintenance_window: one entry of a tenant's maintenance windows.
// The entries have no names, so the resource owns the entry with its content.
type Resource struct {
	data *providerdata.Data
}

var (
	_ resource.ResourceWithConfigure   = (*Resource)(nil)
	_ resource.ResourceWithIdentity    = (*Resource)(nil)
	_ resource.ResourceWithImportState = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan  = (*Resource)(nil)
)

// New returns the resource.
func New() resource.Resource { return &Resource{} }

// Metadata sets the type name. The identity is the content, so it changes with that.
func (*Resource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = TypeName
	resp.ResourceBehavior.MutableIdentity = true
}

// Configure gets the data of the provider.
func (r *Resource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.data = providerdata.From(req.ProviderData, &resp.Diagnostics)
}

// model is the Terraform model of the resource.
type model struct {
	tenantobject.Common
	Model
}

// Schema defines the resource.
func (*Resource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "One maintenance window of a tenant, next to windows that other resources, Terraform configurations or people own. " +
			"To own all windows of a tenant, use `maintenance_windows` of [`osupgrade_config`](config.md); one tenant cannot have both, because the list would remove the window.\n\n" +
			"A window has no name: the resource owns the window with its content. If somebody else changes or removes the window on the server, the next plan creates it again, and leaves the changed one alone. " +
			"The creation of a window that the tenant has already is refused. Another form of the same time, time zone or duration (`4h` or `240m`) is no change.\n\n" +
			"Any number of configurations may write windows of one tenant at once: a write is based on what was read, and starts over if somebody else wrote in between.",
		Attributes: tenantobject.Attributes(Attributes()),
	}
}

// identity is the resource's identity: the tenant and the content in canonical form.
type identity struct {
	Tenant     types.String `tfsdk:"tenant"`
	DaysOfWeek types.String `tfsdk:"days_of_week"`
	StartTime  types.String `tfsdk:"start_time"`
	Timezone   types.String `tfsdk:"timezone"`
	Duration   types.String `tfsdk:"duration"`
}

// IdentitySchema declares the tenant and the content of the window.
func (*Resource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	text := func(description string) identityschema.Attribute {
		return identityschema.StringAttribute{RequiredForImport: true, Description: description}
	}
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"tenant":       text("The tenant that the window belongs to."),
		"days_of_week": text("The days on which the window starts, such as Friday, Saturday."),
		"start_time":   text("The time of day at which the window starts, HH:MM."),
		"timezone":     text("The time zone of the window: site-local, UTC or an IANA name."),
		"duration":     text("The duration of the window, such as 4h."),
	}}
}

func identityOf(tenant types.String, w v1.MaintenanceWindow) identity {
	c := v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{w}}.Canonical().MaintenanceWindows[0]
	return identity{
		tenant, types.StringValue(c.DaysOfWeek), types.StringValue(c.StartTime),
		types.StringValue(c.Timezone), types.StringValue(c.Duration),
	}
}

func (m *model) identify(ctx context.Context, to *tfsdk.ResourceIdentity, diags *diag.Diagnostics) {
	diags.Append(to.Set(ctx, identityOf(m.Tenant, m.API()))...)
}

// shared returns the configuration of a tenant, of which all windows of a process are.
func (r *Resource) shared(api *client.Client, tenant string) *tenantobject.Shared[v1.OSUpgrade] {
	return tenantobject.SharedOf(r.data, api, client.Configs, tenant)
}

// index returns the index of a window with the same meaning; -1 if there is none.
func index(windows []v1.MaintenanceWindow, w v1.MaintenanceWindow) int {
	key := Key(w)
	return slices.IndexFunc(windows, func(other v1.MaintenanceWindow) bool { return Key(other) == key })
}

// existsError means that the tenant has a window already that is to be created.
type existsError struct {
	tenant string
	window v1.MaintenanceWindow
}

func (e *existsError) Error() string { return "the tenant has this window already: " + Key(e.window) }

// report adds the errors of a failed operation.
func report(diags *diag.Diagnostics, operation, tenant string, err error) {
	var there *existsError
	if errors.As(err, &there) {
		diags.AddAttributeError(path.Root("days_of_week"), operation, fmt.Sprintf(
			"Tenant %s has this window already, and this resource does not own it. Nothing was written.\n\n  %s\n\n"+
				"If another resource owns the window, remove one of the two. To own what is there, import it:\n\n"+
				"  import {\n    to = %s.example\n    id = %q\n  }\n\nor set overwrite_existing = true.",
			tenant, Key(there.window), TypeName, idOf(tenant, there.window)))
		return
	}
	diagnostics.Failure{Operation: operation, Tenant: tenant, Err: err}.Add(diags, func(string) (path.Path, bool) { return path.Empty(), false })
}

// added returns windows with another one. A window that is there already is refused, or
// adopted.
func added(windows []v1.MaintenanceWindow, w v1.MaintenanceWindow, tenant string, adopt bool) (next []v1.MaintenanceWindow, done bool, err error) {
	if index(windows, w) >= 0 {
		if adopt {
			return windows, true, nil
		}
		return nil, false, &existsError{tenant, w}
	}
	return append(slices.Clone(windows), w), false, nil
}

// replaced returns windows with one in the place of another. If that is gone, the new one
// is added.
func replaced(windows []v1.MaintenanceWindow, was, w v1.MaintenanceWindow, tenant string) (next []v1.MaintenanceWindow, done bool, err error) {
	at := index(windows, was)
	if Key(was) == Key(w) && at >= 0 {
		return windows, true, nil
	}
	if index(windows, w) >= 0 {
		return nil, false, &existsError{tenant, w}
	}
	if at < 0 {
		return append(slices.Clone(windows), w), false, nil
	}
	next = slices.Clone(windows)
	next[at] = w
	return next, false, nil
}

// without returns windows without one.
func without(windows []v1.MaintenanceWindow, w v1.MaintenanceWindow) (next []v1.MaintenanceWindow, done bool, err error) {
	at := index(windows, w)
	if at < 0 {
		return windows, true, nil
	}
	return slices.Delete(slices.Clone(windows), at, at+1), false, nil
}

// edit changes the windows of a tenant.
func (r *Resource) edit(ctx context.Context, api *client.Client, tenant string, change func([]v1.MaintenanceWindow) ([]v1.MaintenanceWindow, bool, error)) error {
	return r.shared(api, tenant).Edit(ctx, func(c v1.OSUpgrade) (v1.OSUpgrade, bool, error) {
		windows, done, err := change(c.MaintenanceWindows)
		c.MaintenanceWindows = windows
		return c, done, err
	})
}

// Create adds the window.
func (r *Resource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	const operation = "Unable to create " + TypeName
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	plan.Tenant = r.data.TenantOr(plan.Tenant)
	tenant := providerdata.NeedTenant(&resp.Diagnostics, plan.Tenant)
	plan.identify(ctx, resp.Identity, &resp.Diagnostics)
	api := r.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tenantobject.Timeout(plan.Timeouts, "create", limit))
	defer cancel()
	err := r.edit(ctx, api, tenant, func(windows []v1.MaintenanceWindow) ([]v1.MaintenanceWindow, bool, error) {
		return added(windows, plan.API(), tenant, plan.OverwriteExisting.ValueBool())
	})
	if err != nil {
		report(&resp.Diagnostics, operation, tenant, err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// Read looks for the window with the content of the state. All windows of a tenant take one
// request.
func (r *Resource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	const operation = "Unable to read " + TypeName
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	state.identify(ctx, resp.Identity, &resp.Diagnostics)
	api := r.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tenantobject.Timeout(state.Timeouts, "read", limit))
	defer cancel()
	tenant := state.Tenant.ValueString()
	server, err := r.shared(api, tenant).Get(ctx)
	imported := tenantobject.TakeImported(ctx, resp.Private, &resp.Diagnostics)
	switch at := index(server.MaintenanceWindows, state.API()); {
	case err != nil:
		report(&resp.Diagnostics, operation, tenant, err)
	case at < 0 && imported:
		var ids []string
		for _, w := range server.MaintenanceWindows {
			ids = append(ids, idOf(tenant, w))
		}
		resp.Diagnostics.AddError(operation, fmt.Sprintf("Tenant %s has no window %s. The ids of its windows: %s.",
			tenant, Key(state.API()), orNone(ids)))
	case at < 0:
		resp.State.RemoveResource(ctx)
	default:
		if imported {
			state.Model = FromAPI(server.MaintenanceWindows[at])
		}
		resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
	}
}

func orNone(keys []string) string {
	if len(keys) == 0 {
		return "none"
	}
	return strings.Join(keys, "; ")
}

// Update puts the window in the place of the one in the state, in one write.
func (r *Resource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	const operation = "Unable to update " + TypeName
	var state, plan model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	plan.Tenant = state.Tenant
	plan.identify(ctx, resp.Identity, &resp.Diagnostics)
	api := r.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tenantobject.Timeout(plan.Timeouts, "update", limit))
	defer cancel()
	tenant := plan.Tenant.ValueString()
	err := r.edit(ctx, api, tenant, func(windows []v1.MaintenanceWindow) ([]v1.MaintenanceWindow, bool, error) {
		return replaced(windows, state.API(), plan.API(), tenant)
	})
	if err != nil {
		report(&resp.Diagnostics, operation, tenant, err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// Delete removes the window. The other windows stay.
func (r *Resource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	const operation = "Unable to delete " + TypeName
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	api := r.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tenantobject.Timeout(state.Timeouts, "delete", limit))
	defer cancel()
	tenant := state.Tenant.ValueString()
	err := r.edit(ctx, api, tenant, func(windows []v1.MaintenanceWindow) ([]v1.MaintenanceWindow, bool, error) {
		return without(windows, state.API())
	})
	if err != nil {
		report(&resp.Diagnostics, operation, tenant, err)
	}
}

// ModifyPlan sets the tenant, refuses a second owner of the window, finds a window that is
// there already, and warns if a run would start at once.
func (r *Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || r.data == nil {
		return
	}
	r.data.PlanTenant(ctx, req, resp)
	var plan model
	resp.Diagnostics.Append(resp.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() || !resp.Plan.Raw.IsFullyKnown() {
		return
	}
	exists := !req.State.Raw.IsNull()
	r.claim(plan, req.Config.Raw.String(), exists, &resp.Diagnostics)
	if exists || resp.Diagnostics.HasError() || !r.data.Reachable() || !r.data.ValidateAtPlan {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tenantobject.PlanLimit)
	defer cancel()
	tenant := plan.Tenant.ValueString()
	api := r.data.Client(&resp.Diagnostics, "")
	server, err := r.shared(api, tenant).Get(ctx)
	if err != nil {
		diagnostics.Failure{Operation: "Unable to look for " + TypeName, Tenant: tenant, Err: err}.Warn(&resp.Diagnostics,
			"The plan was not compared with the server; apply may still fail.")
		return
	}
	next, done, err := added(server.MaintenanceWindows, plan.API(), tenant, plan.OverwriteExisting.ValueBool())
	if err != nil {
		report(&resp.Diagnostics, "Unable to create "+TypeName, tenant, err)
	}
	if done || err != nil {
		return
	}
	after := server
	after.MaintenanceWindows = next
	warnIfOpen(ctx, tenantobject.Change[v1.OSUpgrade]{
		API: api, Now: r.data.Now(), At: tenantobject.Key{Tenant: tenant}, Prior: &server, Want: after,
	}, plan.API(), &resp.Diagnostics)
}

// claim refuses a second owner of the window in the same configuration: another resource
// of the same content, or a resource that owns all windows of the tenant.
func (r *Resource) claim(plan model, configuration string, exists bool, diags *diag.Diagnostics) {
	tenant, part := plan.Tenant.ValueString(), providerdata.EntryOf(list, Key(plan.API()))
	if !r.data.Claim(tenant, part, configuration, exists) {
		diags.AddAttributeError(path.Root("days_of_week"), "Two resources own one maintenance window",
			"Another "+TypeName+" of this configuration also owns the window of tenant "+tenant+" "+Key(plan.API())+". Remove one of the two.")
		return
	}
	if rival := r.data.Rival(tenant, part); rival != "" {
		diags.AddAttributeError(path.Root("days_of_week"), "Two resources own one maintenance window",
			"An osupgrade_config of this configuration owns all windows of tenant "+tenant+" with its attribute "+rival+
				", and would remove this one. Add the window to that list, or remove the list there and give each of its windows a resource of its own.")
	}
}

// importID matches the id of a window, such as acme/Friday,Saturday@01:00/site-local/4h.
var importID = regexp.MustCompile(`^([^/]+)/([^@]+)@([^/]+)/(.+)/([^/]+)$`)

// idOf returns the id for an import of a window.
func idOf(tenant string, w v1.MaintenanceWindow) string {
	c := identityOf(types.StringValue(tenant), w)
	return fmt.Sprintf("%s/%s@%s/%s/%s", tenant, strings.ReplaceAll(c.DaysOfWeek.ValueString(), " ", ""),
		c.StartTime.ValueString(), c.Timezone.ValueString(), c.Duration.ValueString())
}

// ImportState imports by the id or by the identity.
func (r *Resource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	var named identity
	if req.ID == "" && req.Identity != nil {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &named)...)
	} else if parts := importID.FindStringSubmatch(req.ID); parts != nil {
		named = identity{
			types.StringValue(parts[1]), types.StringValue(parts[2]), types.StringValue(parts[3]),
			types.StringValue(parts[4]), types.StringValue(parts[5]),
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	w := v1.MaintenanceWindow{
		DaysOfWeek: named.DaysOfWeek.ValueString(), StartTime: named.StartTime.ValueString(),
		Timezone: named.Timezone.ValueString(), Duration: named.Duration.ValueString(),
	}
	if _, err := v1.ScheduleOf(v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{w}}, nil, time.UTC); err != nil || !names.Valid(named.Tenant.ValueString()) {
		resp.Diagnostics.AddError("Unable to import "+TypeName, fmt.Sprintf(
			"The id %q is not a tenant and a window with a slash between them. Use one such as %q.", req.ID, "acme/Friday,Saturday@01:00/site-local/4h"))
		return
	}
	m := FromAPI(w)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identityOf(named.Tenant, w))...)
	for name, value := range map[string]any{
		"tenant": named.Tenant, "days_of_week": m.DaysOfWeek, "start_time": m.StartTime, "timezone": m.Timezone, "duration": m.Duration,
	} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
	}
	tenantobject.MarkImported(ctx, resp.Private, &resp.Diagnostics)
}
