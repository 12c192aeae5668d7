package tenantresource

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
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

	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/privatestate"
)

// Common are the attributes that every such resource has, beside its own.
type Common struct {
	Tenant            types.String   `tfsdk:"tenant"`
	OverwriteExisting types.Bool     `tfsdk:"overwrite_existing"`
	Timeouts          timeouts.Value `tfsdk:"timeouts"`
}

// Shared returns the common attributes of a model that embeds them.
func (c *Common) Shared() *Common { return c }

// Attributes adds the common attributes to a resource's own.
func Attributes(ctx context.Context, own map[string]schema.Attribute) map[string]schema.Attribute {
	all := map[string]schema.Attribute{
		"tenant":             tenantAttribute(),
		"overwrite_existing": overwriteAttribute(),
		"timeouts":           attribute.Timeouts(ctx, limits),
	}
	maps.Copy(all, own)
	return all
}

var limits = timeouts.Opts{
	Create: true, CreateDescription: "For creation; `10m` by default.",
	Read: true, ReadDescription: "For reading, as in every refresh; `5m` by default.",
	Update: true, UpdateDescription: "For changes; `10m` by default.",
	Delete: true, DeleteDescription: "For deletion, which waits for a run that stands in its way; `4h10m` by default.",
}

func tenantAttribute() schema.Attribute {
	return schema.StringAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "The tenant that is configured; the provider's `tenant` by default. Another one replaces the resource.",
		Validators:          []validator.String{attribute.Name()},
		PlanModifiers: []planmodifier.String{
			stringplanmodifier.UseStateForUnknown(),
			stringplanmodifier.RequiresReplace(),
		},
	}
}

func overwriteAttribute() schema.Attribute {
	return schema.BoolAttribute{
		Optional: true,
		MarkdownDescription: "Whether that may be overwritten which is there already when this resource begins to manage it; `false` by default, " +
			"which refuses to and asks for an import. Changes that somebody makes later are never overwritten silently.",
	}
}

// identity is the resource's identity. It is set first of all in every
// operation: without it a CLI that knows none fails after the write
// (terraform.md 2.3).
type identity struct {
	Tenant types.String `tfsdk:"tenant"`
}

// nameIdentity is that of an object that has a name.
type nameIdentity struct {
	Tenant types.String `tfsdk:"tenant"`
	Name   types.String `tfsdk:"name"`
}

// IdentitySchema says that the tenant identifies the resource, together with
// the name if it has one.
func (r *Resource[T, M, P]) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"tenant": identityschema.StringAttribute{
			RequiredForImport: true,
			Description:       "The tenant whose " + r.kind.Noun + " it is.",
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

// identify sets the identity of a model's object.
func (r *Resource[T, M, P]) identify(ctx context.Context, to *tfsdk.ResourceIdentity, model P, diags *diag.Diagnostics) {
	r.identifyAs(ctx, to, model.Shared().Tenant, nameOf(model), diags)
}

func (r *Resource[T, M, P]) identifyAs(ctx context.Context, to *tfsdk.ResourceIdentity, tenant, name types.String, diags *diag.Diagnostics) {
	if r.named() {
		diags.Append(to.Set(ctx, nameIdentity{tenant, name})...)
		return
	}
	diags.Append(to.Set(ctx, identity{tenant})...)
}

// ImportState takes the name of a tenant, and that of an object that has one,
// as the id or as the identity. The reading that follows begins to manage all
// that is there.
func (r *Resource[T, M, P]) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	tenant, name := types.StringValue(req.ID), types.StringNull()
	if r.named() {
		before, after, _ := strings.Cut(req.ID, "/")
		tenant, name = types.StringValue(before), types.StringValue(after)
	}
	if req.ID == "" && req.Identity != nil {
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("tenant"), &tenant)...)
		if r.named() {
			resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("name"), &name)...)
		}
	}
	if wrong := r.wrongID(req.ID, tenant.ValueString(), name.ValueString()); wrong != "" {
		resp.Diagnostics.AddError("Unable to import "+r.kind.TypeName, wrong)
		return
	}
	r.identifyAs(ctx, resp.Identity, tenant, name, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("tenant"), tenant)...)
	if r.named() {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), name)...)
	}
	privatestate.MarkImported(ctx, resp.Private, &resp.Diagnostics)
}

// wrongID says what is wrong with what to import; nothing when all is right.
func (r *Resource[T, M, P]) wrongID(id, tenant, name string) string {
	switch {
	case r.named() && (!names.Valid(tenant) || !names.Valid(name)):
		return fmt.Sprintf("The id %q is not the name of a tenant and that of a %s, with a slash between them. "+
			"Use lower-case letters, digits and hyphens, as in acme/christmas.", id, r.kind.Noun)
	case !names.Valid(tenant):
		return fmt.Sprintf("The id %q is not the name of a tenant. Use lower-case letters, digits and hyphens, as in acme.", id)
	}
	return ""
}
