package health

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// model is the Terraform model of the data source.
type model struct {
	tenantobject.Tenanted
	Environment types.String `tfsdk:"environment"`
	OK          types.Bool   `tfsdk:"ok"`
	Checks      []check      `tfsdk:"checks"`
}

type check struct {
	Name   types.String `tfsdk:"name"`
	Host   types.String `tfsdk:"host"`
	Result types.String `tfsdk:"result"`
	Text   types.String `tfsdk:"text"`
}

// Fetch asks the checks and waits for all of them.
func (m *model) Fetch(ctx context.Context, api *client.Client, tenant string) error {
	report, err := api.Health(ctx, tenant, v1.AskHealth{Environment: m.Environment.ValueString()})
	if err != nil {
		return err
	}
	m.Environment, m.OK, m.Checks = conversion.Text(report.Environment), types.BoolValue(report.OK), []check{}
	for _, c := range report.Checks {
		m.Checks = append(m.Checks, check{conversion.Text(c.Check), conversion.Text(c.Host), conversion.Text(c.Result), conversion.Text(c.Text)})
	}
	return nil
}
