package singleton

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

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
