package runs

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantdatasource"
)

// model is the data source as Terraform has it.
type model struct {
	tenantdatasource.Common
	Result types.String `tfsdk:"result"`
	Host   types.String `tfsdk:"host"`
	Since  types.String `tfsdk:"since"`
	Until  types.String `tfsdk:"until"`
	Limit  types.Int64  `tfsdk:"limit"`
	Runs   []run        `tfsdk:"runs"`
}

type run struct {
	ID       types.Int64  `tfsdk:"id"`
	Phase    types.String `tfsdk:"phase"`
	Result   types.String `tfsdk:"result"`
	Reason   types.String `tfsdk:"reason"`
	Trigger  types.String `tfsdk:"trigger"`
	OpenedAt types.String `tfsdk:"opened_at"`
	EndedAt  types.String `tfsdk:"ended_at"`
	NotAfter types.String `tfsdk:"not_after"`
	Hosts    []host       `tfsdk:"hosts"`
}

type host struct {
	Hostname types.String `tfsdk:"hostname"`
	Status   types.String `tfsdk:"status"`
	Error    types.String `tfsdk:"error"`
	Stage    types.String `tfsdk:"stage"`
	Note     types.String `tfsdk:"note"`
}

// Ask asks for the runs. Those that the list has without their hosts are asked
// for one by one.
func (m *model) Ask(ctx context.Context, api *client.Client, tenant string) error {
	filter, wrong := m.filter()
	if len(wrong) > 0 {
		return wrong
	}
	found, err := api.Runs(ctx, tenant, filter)
	if err != nil {
		return err
	}
	m.Runs = make([]run, 0, len(found))
	for _, r := range found {
		if r.Hosts == nil {
			whole, err := api.Run(ctx, tenant, r.ID)
			switch {
			case err == nil:
				r = whole
			// The server has forgotten it meanwhile.
			case !client.Missing(err):
				return err
			}
		}
		m.Runs = append(m.Runs, fromAPI(r))
	}
	return nil
}

func fromAPI(r v1.Run) run {
	hosts := make([]host, 0, len(r.Hosts))
	for _, h := range r.Hosts {
		hosts = append(hosts, host{attribute.Text(h.Hostname), attribute.Text(h.Status), attribute.Text(h.Error), attribute.Text(h.Stage), attribute.Text(h.Note)})
	}
	return run{
		ID: types.Int64Value(int64(r.ID)), Phase: attribute.Text(r.Phase), Result: attribute.Text(r.Result), Reason: attribute.Text(r.Reason),
		Trigger: attribute.Text(r.Trigger), OpenedAt: attribute.Time(&r.OpenedAt), EndedAt: attribute.Time(r.EndedAt), NotAfter: attribute.Time(&r.NotAfter),
		Hosts: hosts,
	}
}
