package config

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// DataSource is the data source osupgrade_config: a tenant's configuration as the server
// has it, without the state of upgrades, which moves by itself.
type DataSource struct {
	tenantobject.DataSource[declared, *declared]
}

var _ datasource.DataSourceWithConfigure = (*DataSource)(nil)

// NewDataSource returns the data source.
func NewDataSource() datasource.DataSource {
	return &DataSource{tenantobject.DataSource[declared, *declared]{TypeName: TypeName}}
}

// declared is the Terraform model of the data source.
type declared struct {
	tenantobject.Tenanted
	WorkerApplications []string       `tfsdk:"worker_applications"`
	MaintenanceWindows []window.Model `tfsdk:"maintenance_windows"`
}

// Fetch reads the configuration.
func (d *declared) Fetch(ctx context.Context, api *client.Client, tenant string) error {
	server, _, err := api.Config(ctx, tenant)
	d.WorkerApplications, d.MaintenanceWindows = names(server.WorkerApplications), window.AllFromAPI(server.MaintenanceWindows)
	return err
}

// Schema defines the data source.
func (*DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A tenant's OS-upgrade configuration as the server has it, such as one that another Terraform configuration manages. " +
			"A tenant without a configuration is an error. The data source `osupgrade_state` also has what moves by itself.",
		Attributes: map[string]schema.Attribute{
			"tenant":     tenantobject.TenantDataAttribute(),
			applications: tenantobject.ComputedTextSet("The names of the worker applications."),
			windows:      window.DataAttribute("The maintenance windows, in the order and form of the server."),
		},
	}
}
