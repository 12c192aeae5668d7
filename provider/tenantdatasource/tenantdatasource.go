// Package source is what data sources have in common: they ask the server
// about one tenant and show what it says.
//
// It decides which tenant is meant and what a failure reads like. What is
// asked, each data source says itself.
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

// Common is the attribute that every data source has.
type Common struct {
	Tenant types.String `tfsdk:"tenant"`
}

// Shared returns the common attributes of a model that embeds them.
func (c *Common) Shared() *Common { return c }

// Model is a data source as Terraform has it.
type Model interface {
	// Shared are the common attributes.
	Shared() *Common
	// Ask asks the server about the tenant and takes over what it says.
	Ask(ctx context.Context, api *client.Client, tenant string) error
}

// DataSource is a data source of the given name. It lacks its Schema.
type DataSource[M any, P interface {
	*M
	Model
}] struct {
	TypeName   string
	connection *connection.Connection
}

// Metadata names the data source.
func (d *DataSource[M, P]) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = d.TypeName
}

// Configure takes the connection over from the provider.
func (d *DataSource[M, P]) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.connection = connection.From(req.ProviderData, &resp.Diagnostics)
}

// Read asks the server.
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
	if err := m.Ask(ctx, api, tenant); err != nil {
		diagnostic.Failure{Operation: operation, Tenant: tenant, Err: err}.Add(&resp.Diagnostics, nil)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// Tenant is the attribute tenant.
func Tenant() schema.Attribute {
	return schema.StringAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "The tenant; the provider's `tenant` by default.",
		Validators:          []validator.String{attribute.Name()},
	}
}

// Site is the attribute site of those that can ask another site.
func Site() schema.Attribute {
	return schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: "The site that is asked; by default the one that answers at the endpoint.",
		Validators:          []validator.String{attribute.Name()},
	}
}

// Text is an attribute that shows a text.
func Text(description string) schema.Attribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}
