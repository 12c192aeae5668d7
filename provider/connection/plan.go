package connection

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// PlanTenant plans the provider's tenant in the attribute tenant of a resource
// that names none. When the provider's tenant is another one than before, the
// resource is replaced.
func (c *Connection) PlanTenant(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	at := path.Root("tenant")
	var configured, was types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, at, &configured)...)
	if !configured.IsNull() || c.Tenant.IsUnknown() {
		return
	}
	if NeedTenant(&resp.Diagnostics, c.Tenant) == "" {
		return
	}
	resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, at, c.Tenant)...)
	if req.State.Raw.IsNull() {
		return
	}
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, at, &was)...)
	if !was.Equal(c.Tenant) {
		resp.RequiresReplace = append(resp.RequiresReplace, at)
	}
}
