package config

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/maintenancewindow"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantdatasource"
)

// DataSource is the data source osupgrade_config: a tenant's configuration as the server
// has it, without the state of upgrades, which moves by itself.
type DataSource struct {
	tenantdatasource.DataSource[declared, *declared]
}

var _ datasource.DataSourceWithConfigure = (*DataSource)(nil)

// NewDataSource returns the data source.
func NewDataSource() datasource.DataSource {
	return &DataSource{tenantdatasource.DataSource[declared, *declared]{TypeName: TypeName}}
}

// declared is the Terraform model of the data source.
type declared struct {
	tenantdatasource.Common
	WorkerApplications []string                  `tfsdk:"worker_applications"`
	MaintenanceWindows []maintenancewindow.Model `tfsdk:"maintenance_windows"`
}

// Fetch reads the configuration.
func (d *declared) Fetch(ctx context.Context, api *client.Client, tenant string) error {
	server, _, err := api.Config(ctx, tenant)
	d.WorkerApplications, d.MaintenanceWindows = names(server), []maintenancewindow.Model{}
	for _, w := range server.MaintenanceWindows {
		d.MaintenanceWindows = append(d.MaintenanceWindows, maintenancewindow.FromAPI(w))
	}
	return err
}

// Schema defines the data source.
func (*DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A tenant's OS-upgrade configuration as the server has it, such as one that another Terraform configuration manages. " +
			"A tenant without a configuration is an error. The data source [`osupgrade_state`](state.md) also has what moves by itself.",
		Attributes: map[string]schema.Attribute{
			"tenant": tenantdatasource.Tenant(),
			applications: schema.SetAttribute{
				ElementType: types.StringType, Computed: true,
				MarkdownDescription: "The names of the worker applications.",
			},
			windows: schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The maintenance windows, in the order and form of the server.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"days_of_week": schema.SetAttribute{
						ElementType: types.StringType, Computed: true,
						MarkdownDescription: "The days on which the window starts.",
					},
					"start_time": tenantdatasource.Text("The time of day at which the window starts, `HH:MM`."),
					"timezone":   tenantdatasource.Text("The time zone of `days_of_week` and `start_time`: `site-local`, `UTC` or an IANA name."),
					"duration":   tenantdatasource.Text("The duration of the window, such as `4h`."),
				}},
			},
		},
	}
}
