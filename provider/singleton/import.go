package singleton

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/private"
)

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
	private.MarkImported(ctx, resp.Private, &resp.Diagnostics)
}

// wrongID says what is wrong with what to import; nothing when all is right.
func (r *Resource[T, M, P]) wrongID(id, tenant, name string) string {
	switch {
	case r.named() && (!v1.ValidName(tenant) || !v1.ValidName(name)):
		return fmt.Sprintf("The id %q is not the name of a tenant and that of a %s, with a slash between them. "+
			"Use lower-case letters, digits and hyphens, as in acme/christmas.", id, r.kind.Noun)
	case !v1.ValidName(tenant):
		return fmt.Sprintf("The id %q is not the name of a tenant. Use lower-case letters, digits and hyphens, as in acme.", id)
	}
	return ""
}
