// Package hosts is the data source osupgrade_hosts: a tenant's hosts and the
// versions that they report.
//
// It shows what the server says and decides nothing.
package hosts

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/connection"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
)

// TypeName is the name of the data source.
const TypeName = "osupgrade_hosts"

// DataSource is osupgrade_hosts.
type DataSource struct {
	connection *connection.Connection
}

var _ datasource.DataSourceWithConfigure = (*DataSource)(nil)

// New makes the data source.
func New() datasource.DataSource { return &DataSource{} }

// Metadata names the data source.
func (*DataSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = TypeName
}

// Configure takes the connection over from the provider.
func (d *DataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.connection = connection.From(req.ProviderData, &resp.Diagnostics)
}

// Read asks the server.
func (d *DataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	const operation = "Unable to read " + TypeName
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	m.Tenant = d.connection.TenantOr(m.Tenant)
	tenant := connection.NeedTenant(&resp.Diagnostics, m.Tenant)
	api := d.connection.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	hosts, err := api.Hosts(ctx, tenant, m.Site.ValueString())
	if err != nil {
		diagnostic.Failure{Operation: operation, Tenant: tenant, Err: err}.Add(&resp.Diagnostics, nil)
		return
	}
	m.fromAPI(hosts)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
