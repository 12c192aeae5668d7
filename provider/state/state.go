// Package state is the data source osupgrade_state: what is going on with a
// tenant's upgrades now, and how the last run ended.
//
// It shows what the server says and decides nothing.
package state

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/connection"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
)

// TypeName is the name of the data source.
const TypeName = "osupgrade_state"

// DataSource is osupgrade_state.
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
	state, err := api.State(ctx, tenant, m.Site.ValueString())
	if err != nil {
		diagnostic.Failure{Operation: operation, Tenant: tenant, Err: err}.Add(&resp.Diagnostics, nil)
		return
	}
	m.fromAPI(state)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
