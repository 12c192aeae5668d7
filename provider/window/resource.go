package window

import (
	"context"
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

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// TypeName is the type name of the resource.
const TypeName = "osupgrade_maintenance_window"

// list is the attribute of osupgrade_config that has all windows.
const list = "maintenance_windows"

// The default timeouts.
const (
	readLimit  = 5 * time.Minute
	usualLimit = 10 * time.Minute
)

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
			"To own all windows of a tenant, use `maintenance_windows` of `osupgrade_config`; one tenant cannot have both, because the list would remove the window.\n\n" +
			"A window has no name: the resource owns the window with its content. If somebody else changes or removes the window on the server, the next plan creates it again, and leaves the changed one alone. " +
			"A window that the tenant has already is managed from then on, and the plan warns of it. Another form of the same time, time zone or duration (`4h` or `240m`) is no change.\n\n" +
			"Any number of configurations may write windows of one tenant at once: a write is based on what was read, and starts over if somebody else wrote in between. " +
			"Resources of one configuration may exchange their windows, also when a key of `for_each` is renamed: what an apply asks for at the same time is one write, and a window that another resource asks for stays.",
		Attributes: tenantobject.Attributes(Attributes(), "For deletion, which does not wait for a run in progress; `10m` by default."),
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

// windowList are the windows of a tenant, which all resources of a process share.
var windowList = tenantobject.List[v1.OSUpgrade, v1.MaintenanceWindow]{
	Object:  client.Configs,
	Entries: func(c v1.OSUpgrade) []v1.MaintenanceWindow { return c.MaintenanceWindows },
	With: func(c v1.OSUpgrade, list []v1.MaintenanceWindow) v1.OSUpgrade {
		c.MaintenanceWindows = list
		return c
	},
	Key: Key,
}

// Beside returns what the owner of all windows of a tenant is to tell this resource.
func Beside(data *providerdata.Data, api *client.Client, tenant string) tenantobject.Beside[v1.OSUpgrade] {
	return tenantobject.EntriesOf(data, api, windowList, tenant)
}

func (r *Resource) windows(api *client.Client, tenant string) *tenantobject.Entries[v1.OSUpgrade, v1.MaintenanceWindow] {
	return tenantobject.EntriesOf(r.data, api, windowList, tenant)
}

// index returns the index of a window with the same meaning; -1 if there is none.
func index(windows []v1.MaintenanceWindow, w v1.MaintenanceWindow) int {
	key := Key(w)
	return slices.IndexFunc(windows, func(other v1.MaintenanceWindow) bool { return Key(other) == key })
}

// report adds the errors of a failed operation.
func report(diags *diag.Diagnostics, operation, tenant string, err error) {
	diagnostics.Failure{Operation: operation, Tenant: tenant, Err: err}.Add(diags, nil)
}

// change makes a window out of another, and reports whether it did; was is nil for a
// creation, want for a deletion.
func (r *Resource) change(ctx context.Context, operation, limit string, m model, was, want *v1.MaintenanceWindow, diags *diag.Diagnostics) bool {
	api := r.data.Client(diags, operation)
	if diags.HasError() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, tenantobject.Timeout(m.Timeouts, limit, usualLimit))
	defer cancel()
	tenant := m.Tenant.ValueString()
	err := r.windows(api, tenant).Change(ctx, was, want)
	if err != nil {
		report(diags, operation, tenant, err)
	}
	return err == nil
}

// Create adds the window. One that is there already is managed from now on: the plan has
// warned of it.
func (r *Resource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	plan.Tenant = r.data.TenantOr(plan.Tenant)
	providerdata.NeedTenant(&resp.Diagnostics, plan.Tenant)
	plan.identify(ctx, resp.Identity, &resp.Diagnostics)
	want := plan.API()
	if r.change(ctx, "Unable to create "+TypeName, "create", plan, nil, &want, &resp.Diagnostics) {
		resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	}
}

// Read looks for the window with the content of the state. All windows of a tenant take one
// request. Of two resources with one window, one is no longer there.
func (r *Resource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	const operation = "Unable to read " + TypeName
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	state.identify(ctx, resp.Identity, &resp.Diagnostics)
	api := r.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tenantobject.Timeout(state.Timeouts, "read", readLimit))
	defer cancel()
	tenant := state.Tenant.ValueString()
	shared := r.windows(api, tenant)
	first := shared.Refresh(state.API())
	server, err := shared.Get(ctx)
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
	case at < 0 && shared.Blank():
		resp.Diagnostics.AddError(operation, fmt.Sprintf(
			"The answer is a configuration of tenant %s with nothing in it, not even an empty list. This does not prove that the window was removed. "+
				"If somebody has removed everything, take the window out of the state with terraform state rm, and apply again.", tenant))
	case at < 0 || !first && !imported:
		if at < 0 {
			shared.Lose(state.API())
		}
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
	var state, plan model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	plan.Tenant = state.Tenant
	plan.identify(ctx, resp.Identity, &resp.Diagnostics)
	was, want := state.API(), plan.API()
	if r.change(ctx, "Unable to update "+TypeName, "update", plan, &was, &want, &resp.Diagnostics) {
		resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	}
}

// Delete removes the window, or puts that of a replacement in its place. The other windows
// stay.
func (r *Resource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	was := state.API()
	var want *v1.MaintenanceWindow
	if next, replaced := tenantobject.SuccessorOf[v1.MaintenanceWindow](ctx, req.Private, state.Tenant.ValueString(), &resp.Diagnostics); replaced {
		want = &next
	}
	r.change(ctx, "Unable to delete "+TypeName, "delete", state, &was, want, &resp.Diagnostics)
}

// ModifyPlan sets the tenant, refuses a second owner of the window, and warns of a window that
// is there already, and of a run that would start at once.
func (r *Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if r.data == nil {
		return
	}
	if req.Plan.Raw.IsNull() {
		r.planDeletion(ctx, req, resp)
		return
	}
	r.data.PlanTenant(ctx, req, resp)
	var plan model
	resp.Diagnostics.Append(resp.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() || !resp.Plan.Raw.IsFullyKnown() {
		return
	}
	exists := !req.State.Raw.IsNull()
	if !exists {
		tenantobject.KeepSuccessor(ctx, resp.Private, plan.Tenant.ValueString(), plan.API(), &resp.Diagnostics)
	}
	r.claim(plan, req.Config.Raw.String(), exists, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || !r.data.Reachable() || !r.data.ValidateAtPlan {
		return
	}
	var was *v1.MaintenanceWindow
	if exists {
		var state model
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		was = new(state.API())
	}
	r.planChange(ctx, plan, was, &resp.Diagnostics)
}

// planChange compares a planned window with those of the server. was is the window in the
// state; nil if the plan creates one.
func (r *Resource) planChange(ctx context.Context, plan model, was *v1.MaintenanceWindow, diags *diag.Diagnostics) {
	want, tenant := plan.API(), plan.Tenant.ValueString()
	shared := r.windows(r.data.Client(diags, ""), tenant)
	defer shared.Plan()()
	if was != nil {
		shared.Own(*was)
		if Key(*was) == Key(want) {
			return
		}
	}
	planned := togetherOf(r.data, tenant)
	planned.noteWindow(was, &want)
	ctx, cancel := context.WithTimeout(ctx, tenantobject.PlanLimit)
	defer cancel()
	server, err := shared.Get(ctx)
	switch {
	case err != nil:
		diagnostics.Failure{Operation: "Unable to look for " + TypeName, Tenant: tenant, Err: err}.Warn(diags,
			"The plan was not compared with the server; apply may still fail.")
	case index(server.MaintenanceWindows, want) < 0:
		r.warnOfEdited(ctx, shared, tenant, server.MaintenanceWindows, want, diags)
		r.warnOfRun(ctx, tenant, was, want, planned.config(server), diags)
	case !plan.OverwriteExisting.ValueBool() && !shared.Owned(ctx, want):
		diags.AddAttributeWarning(path.Root("days_of_week"), "What exists is managed from now on", fmt.Sprintf(
			"Tenant %s already has this window. An earlier apply may have created it without receiving the answer, or another resource of this configuration is giving it up.\n\n  %s\n\n%s",
			tenant, Key(want), tenantobject.AlsoManaged))
	}
}

// warnOfRun warns if a run starts at once because a window is made of another. after is the
// configuration with all that is planned.
func (r *Resource) warnOfRun(ctx context.Context, tenant string, was *v1.MaintenanceWindow, want v1.MaintenanceWindow, after v1.OSUpgrade, diags *diag.Diagnostics) {
	before := after
	before.MaintenanceWindows = slices.DeleteFunc(slices.Clone(after.MaintenanceWindows), func(w v1.MaintenanceWindow) bool { return Key(w) == Key(want) })
	if was != nil {
		before.MaintenanceWindows = append(before.MaintenanceWindows, *was)
	}
	warnIfOpen(ctx, tenantobject.Change[v1.OSUpgrade]{
		API: r.data.Client(diags, ""), Data: r.data, Now: r.data.Now(), At: tenantobject.Key{Tenant: tenant}, Prior: &before, Want: after,
	}, want, diags)
}

// warnOfEdited warns that a window which somebody else changed is created again: the changed
// one stays beside it.
func (r *Resource) warnOfEdited(ctx context.Context, shared *tenantobject.Entries[v1.OSUpgrade, v1.MaintenanceWindow], tenant string, server []v1.MaintenanceWindow, want v1.MaintenanceWindow, diags *diag.Diagnostics) {
	if !shared.Lost(want) {
		return
	}
	var edited []string
	for _, w := range server {
		if alike(w, want) && !shared.Owned(ctx, w) {
			edited = append(edited, Key(w))
		}
	}
	if len(edited) > 0 {
		diags.AddAttributeWarning(path.Root("days_of_week"), "Somebody else changed this window, and both will open", fmt.Sprintf(
			"Tenant %s no longer has the window %s, and this plan creates it again. It has another one that is not declared here and may be the changed one. That one stays:\n\n  - %s\n\n"+
				"Remove it on the server, or declare it as a resource of its own if it is to stay.",
			tenant, Key(want), strings.Join(edited, "\n  - ")))
	}
}

// alike reports whether one window may have been made of another by an edit: the days, the
// time of the start or the duration are the same.
func alike(a, b v1.MaintenanceWindow) bool {
	same := func(part func(w *v1.MaintenanceWindow) *string) bool {
		changed := a
		*part(&changed) = *part(&b)
		return Key(changed) == Key(a)
	}
	return same(func(w *v1.MaintenanceWindow) *string { return &w.DaysOfWeek }) ||
		same(func(w *v1.MaintenanceWindow) *string { return &w.StartTime }) ||
		same(func(w *v1.MaintenanceWindow) *string { return &w.Duration })
}

// planDeletion records whose window is deleted.
func (r *Resource) planDeletion(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if !resp.Diagnostics.HasError() && r.data.Reachable() {
		tenant, was := state.Tenant.ValueString(), state.API()
		r.windows(r.data.Client(&resp.Diagnostics, ""), tenant).Own(was)
		togetherOf(r.data, tenant).noteWindow(&was, nil)
	}
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
