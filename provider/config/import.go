package config

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/private"
)

// ImportState takes the name of a tenant, as the id or as the identity. The
// reading that follows begins to manage every list that is there.
func (*Resource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	tenant := types.StringValue(req.ID)
	if req.ID == "" && req.Identity != nil {
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("tenant"), &tenant)...)
	}
	if !v1.ValidName(tenant.ValueString()) {
		resp.Diagnostics.AddError("Unable to import "+TypeName,
			fmt.Sprintf("The id %q is not the name of a tenant. Use lower-case letters, digits and hyphens, as in acme.", tenant.ValueString()))
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{tenant})...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("tenant"), tenant)...)
	private.MarkImported(ctx, resp.Private, &resp.Diagnostics)
}
