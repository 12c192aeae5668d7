// Package tenantdatasource implements the data sources, which read something
// about one tenant from the server.
//
// It decides which tenant is read and how a failure is reported. Each data
// source defines what it reads.
package tenantdatasource

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/connection"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
)

// Common is the attribute of every data source.
type Common struct {
	Tenant types.String `tfsdk:"tenant"`
}

// Shared returns the common attributes of a model that embeds them.
func (c *Common) Shared() *Common { return c }

// Model is the Terraform model of a data source.
type Model interface {
	// Shared returns the common attributes.
	Shared() *Common
	// Fetch sets the other attributes from the server's answer for a tenant.
	Fetch(ctx context.Context, api *client.Client, tenant string) error
}

// DataSource is a data source of a given type name, without its Schema.
type DataSource[M any, P interface {
	*M
	Model
}] struct {
	TypeName   string
	connection *connection.Connection
}

// Metadata sets the type name.
func (d *DataSource[M, P]) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = d.TypeName
}

// Configure gets the connection from the provider.
func (d *DataSource[M, P]) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.connection = connection.From(req.ProviderData, &resp.Diagnostics)
}

// Read reads the data source from the server.
func (d *DataSource[M, P]) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	operation := "Unable to read " + d.TypeName
	m := P(new(M))
	resp.Diagnostics.Append(req.Config.Get(ctx, m)...)
	common := m.Shared()
	common.Tenant = d.connection.TenantOr(common.Tenant)
	tenant := connection.NeedTenant(&resp.Diagnostics, common.Tenant)
	api := d.connection.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := m.Fetch(ctx, api, tenant); err != nil {
		diagnostic.Failure{Operation: operation, Tenant: tenant, Err: err}.Add(&resp.Diagnostics, nil)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// Tenant returns the attribute tenant.
func Tenant() schema.Attribute {
	return schema.StringAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "The tenant; the provider's `tenant` by default.",
		Validators:          []validator.String{attribute.Name()},
	}
}

// Site returns the attribute site, for data sources that can read another site.
func Site() schema.Attribute {
	return schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: "The site to read; by default the site at the endpoint.",
		Validators:          []validator.String{attribute.Name()},
	}
}

// Text returns a computed text attribute.
func Text(description string) schema.Attribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}
