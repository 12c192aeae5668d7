package tenantobject

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// Common are the attributes of every tenant resource.
type Common struct {
	Tenant            types.String `tfsdk:"tenant"`
	OverwriteExisting types.Bool   `tfsdk:"overwrite_existing"`
	Timeouts          types.Object `tfsdk:"timeouts"`
}

// Shared returns the common attributes of a model that embeds them.
func (c *Common) Shared() *Common { return c }

// NamedCommon are the attributes of every resource of a named object.
type NamedCommon struct {
	Common
	Name types.String `tfsdk:"name"`
}

// ObjectName returns the attribute name.
func (c *NamedCommon) ObjectName() types.String { return c.Name }

// What deletions wait for.
const (
	WaitsForRun = "For deletion, which waits for a run in progress; `50m` by default."
	WaitsForNo  = "For deletion, which does not wait for a run in progress; `50m` by default."
)

// Attributes adds the common attributes to a resource's own attributes. deletion describes the
// timeout of its deletion.
func Attributes(own map[string]schema.Attribute, deletion string) map[string]schema.Attribute {
	all := map[string]schema.Attribute{
		"tenant":             TenantAttribute(),
		"overwrite_existing": overwriteAttribute(),
		"timeouts": TimeoutsAttribute(map[string]string{
			"create": "For creation; `10m` by default.",
			"read":   "For reading, also at each refresh; `5m` by default.",
			"update": "For changes; `10m` by default.",
			"delete": deletion,
		}),
	}
	maps.Copy(all, own)
	return all
}

// TenantAttribute is the attribute tenant of a resource.
func TenantAttribute() schema.Attribute {
	return schema.StringAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "The tenant; the provider's `tenant` by default. A change replaces the resource.",
		Validators:          []validator.String{validators.Name()},
		PlanModifiers: []planmodifier.String{
			stringplanmodifier.UseStateForUnknown(),
			stringplanmodifier.RequiresReplace(),
		},
	}
}

// TenantOrAllAttribute is TenantAttribute for objects that may belong to all tenants.
func TenantOrAllAttribute() schema.Attribute {
	attribute, _ := TenantAttribute().(schema.StringAttribute)
	attribute.MarkdownDescription = "The tenant, or `*` for all tenants; the provider's `tenant` by default. A change replaces the resource."
	attribute.Validators = []validator.String{validators.Rule("the name of a tenant, or *", func(text string) error {
		if text == client.OfAll {
			return nil
		}
		return validators.CheckName(text)
	})}
	return attribute
}

func overwriteAttribute() schema.Attribute {
	return schema.BoolAttribute{
		Optional: true,
		MarkdownDescription: "Overwrite existing settings when this resource first takes them over. Defaults to `false`: " +
			"if they differ from the configuration, the plan then fails and asks for an import. Later changes by others are never overwritten silently.",
	}
}

// identity is the resource's identity. Every operation sets it first. Without
// it, a CLI with a state from before identities fails after the write.
type identity struct {
	Tenant types.String `tfsdk:"tenant"`
}

// nameIdentity is the identity of a named object.
type nameIdentity struct {
	Tenant types.String `tfsdk:"tenant"`
	Name   types.String `tfsdk:"name"`
}

// ownIdentity is the identity of a tenant.
type ownIdentity struct {
	Name types.String `tfsdk:"name"`
}

// identityOf returns the identity of an object.
func (r *Resource[T, M, P]) identityOf(tenant, name types.String) any {
	switch {
	case r.kind.NamedBy != "":
		return ownIdentity{tenant}
	case r.named():
		return nameIdentity{tenant, name}
	}
	return identity{tenant}
}

// IdentitySchema declares the tenant and, for a named object, the name.
func (r *Resource[T, M, P]) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	if r.kind.NamedBy != "" {
		resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
			r.kind.NamedBy: identityschema.StringAttribute{RequiredForImport: true, Description: "The name of the " + r.kind.Noun + "."},
		}}
		return
	}
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"tenant": identityschema.StringAttribute{
			RequiredForImport: true,
			Description:       "The tenant that the " + r.kind.Noun + " belongs to.",
		},
	}}
	if r.named() {
		resp.IdentitySchema.Attributes["name"] = identityschema.StringAttribute{
			RequiredForImport: true,
			Description:       "The name of the " + r.kind.Noun + ".",
		}
	}
}

func (r *Resource[T, M, P]) named() bool {
	_, ok := any(P(new(M))).(Named)
	return ok
}

// identify sets the identity to that of a model.
func (r *Resource[T, M, P]) identify(ctx context.Context, to *tfsdk.ResourceIdentity, model P, diags *diag.Diagnostics) {
	r.identifyAs(ctx, to, model.Shared().Tenant, nameOf(model), diags)
}

func (r *Resource[T, M, P]) identifyAs(ctx context.Context, to *tfsdk.ResourceIdentity, tenant, name types.String, diags *diag.Diagnostics) {
	diags.Append(to.Set(ctx, r.identityOf(tenant, name))...)
}

// ImportState imports an object by id or by identity: tenant, or tenant and
// name. The read that follows sets every attribute.
func (r *Resource[T, M, P]) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	tenant, name := types.StringValue(req.ID), types.StringNull()
	if r.named() {
		before, after, _ := strings.Cut(req.ID, "/")
		tenant, name = types.StringValue(before), types.StringValue(after)
	}
	if req.ID == "" && req.Identity != nil {
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, r.tenantAttribute(), &tenant)...)
		if r.named() {
			resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("name"), &name)...)
		}
	}
	if wrong := r.wrongID(req.ID, tenant.ValueString(), name.ValueString()); wrong != "" {
		resp.Diagnostics.AddError("Unable to import "+r.kind.TypeName, wrong)
		return
	}
	r.identifyAs(ctx, resp.Identity, tenant, name, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, r.tenantAttribute(), tenant)...)
	if r.named() {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), name)...)
	}
	MarkImported(ctx, resp.Private, &resp.Diagnostics)
}

// validTenant reports whether an object can be of a tenant.
func (r *Resource[T, M, P]) validTenant(name string) bool {
	return names.Valid(name) || r.kind.ForAll && name == client.OfAll
}

// wrongID returns the error of an invalid id; empty if it is valid.
func (r *Resource[T, M, P]) wrongID(id, tenant, name string) string {
	switch {
	case r.kind.ValidName != nil && (!r.validTenant(tenant) || !r.kind.ValidName(name)):
		return fmt.Sprintf("The id %q is not the name of a tenant (or * for all tenants) and the name of the %s with a slash between them. Use an id such as acme/ann.", id, r.kind.Noun)
	case r.kind.ValidName != nil:
		return ""
	case r.named() && (!names.Valid(tenant) || !names.Valid(name)):
		return fmt.Sprintf("The id %q is not the name of a tenant and the name of a %s with a slash between them. "+
			"Use lower-case letters, digits and hyphens, as in acme/christmas.", id, r.kind.Noun)
	case !names.Valid(tenant):
		return fmt.Sprintf("The id %q is not the name of a tenant. Use lower-case letters, digits and hyphens, as in acme.", id)
	}
	return ""
}
