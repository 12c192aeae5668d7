package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantdatasource"
)

// model is the Terraform model of the data source.
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

// Fetch reads the list of runs and, where the list omits the hosts of a run, the
// run itself.
func (m *model) Fetch(ctx context.Context, api *client.Client, tenant string) error {
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
			complete, err := api.Run(ctx, tenant, r.ID)
			switch {
			case err == nil:
				r = complete
			// 404: the server has deleted the run from its history since.
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

// filter returns the filter and its problems. It ignores unknown values.
func (m *model) filter() (v1.RunFilter, v1.Problems) {
	var wrong v1.Problems
	instant := func(field string, text types.String) time.Time {
		if text.IsNull() || text.IsUnknown() {
			return time.Time{}
		}
		at, err := time.Parse(time.RFC3339, text.ValueString())
		if err != nil {
			wrong = append(wrong, v1.Problem{Field: field, Value: text.ValueString(), Message: fmt.Sprintf(
				"%q is not an instant in RFC 3339 format; use one such as 2026-11-27T00:00:00Z", text.ValueString())})
		}
		return at
	}
	f := v1.RunFilter{
		Result: m.Result.ValueString(), Host: m.Host.ValueString(),
		Since: instant("since", m.Since), Until: instant("until", m.Until),
		Limit: int(m.Limit.ValueInt64()),
	}
	return f, append(wrong, f.Validate()...)
}

// ValidateConfig applies the API's rules for a filter.
func (*DataSource) ValidateConfig(ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	_, wrong := m.filter()
	for _, problem := range wrong {
		at := path.Root(problem.Field)
		resp.Diagnostics.AddAttributeError(at, "Invalid value of "+at.String(), problem.Message)
	}
}
