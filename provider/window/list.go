package window

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	frameworklist "github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// NewList returns the list for terraform query.
func NewList() frameworklist.ListResource {
	return &tenantobject.ListResource{
		TypeName: TypeName,
		About:    "The maintenance windows of a tenant, one by one. To import them as one resource, use `osupgrade_config`.",
		Find:     find,
	}
}

// find returns the windows of a tenant.
func find(ctx context.Context, ask tenantobject.Query) ([]tenantobject.Listed, error) {
	server, err := tenantobject.EntriesOf(ask.Data, ask.API, windowList, ask.Tenant).Get(ctx)
	var found []tenantobject.Listed
	for _, w := range server.MaintenanceWindows {
		found = append(found, listed(ask.Tenant, w))
	}
	return found, err
}

func listed(tenant string, w v1.MaintenanceWindow) tenantobject.Listed {
	owner := types.StringValue(tenant)
	return tenantobject.Listed{Name: idOf(tenant, w), Identity: identityOf(owner, w), Fill: func(ctx context.Context, to *tfsdk.Resource, diags *diag.Diagnostics) {
		diags.Append(to.SetAttribute(ctx, path.Root("tenant"), owner)...)
		var m model
		diags.Append(to.Get(ctx, &m)...)
		m.Model = FromAPI(w)
		diags.Append(to.Set(ctx, m)...)
	}}
}
