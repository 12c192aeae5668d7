package run

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/connection"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/privatestate"
)

// ImportState takes tenant/run_id, or run_id with the provider's tenant.
func (r *Resource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	tenant, id, err := parseID(req.ID)
	if err != nil {
		resp.Diagnostics.AddError("Unable to import "+TypeName, err.Error())
		return
	}
	named := types.StringPointerValue(tenant)
	if named = r.connection.TenantOr(named); connection.NeedTenant(&resp.Diagnostics, named) == "" {
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("tenant"), named)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("run_id"), id)...)
	privatestate.MarkImported(ctx, resp.Private, &resp.Diagnostics)
}

// parseID takes an id apart; a nil tenant is one that it does not name.
func parseID(text string) (tenant *string, id int64, err error) {
	number := text
	if before, after, found := strings.Cut(text, "/"); found {
		tenant, number = &before, after
		if !names.Valid(before) {
			return nil, 0, fmt.Errorf("%q is not the name of a tenant; use an id such as acme/41, or 41 with the provider's tenant", before)
		}
	}
	id, err = strconv.ParseInt(number, 10, 64)
	if err != nil || id <= 0 {
		return nil, 0, fmt.Errorf("%q is not the id of a run; use an id such as acme/41, or 41 with the provider's tenant", number)
	}
	return tenant, id, nil
}

// takeRequest takes over what an imported run was asked for with, so that the
// same in the configuration is no change.
func (m *model) takeRequest(r v1.Run) {
	m.Reason = attribute.Text(r.RequestReason)
	if r.RetryOf != 0 {
		m.RetryOf = types.Int64Value(int64(r.RetryOf))
	}
}
