package tenantobject

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	resourceschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// Tenanted is the attribute of every data source.
type Tenanted struct {
	Tenant types.String `tfsdk:"tenant"`
}

// Shared returns the common attributes of a model that embeds them.
func (c *Tenanted) Shared() *Tenanted { return c }

// DataSourceModel is the Terraform model of a data source.
type DataSourceModel interface {
	// Shared returns the common attributes.
	Shared() *Tenanted
	// Fetch sets the other attributes from the server's answer for a tenant.
	Fetch(ctx context.Context, api *client.Client, tenant string) error
}

// DataSource is a data source of a given type name, without its Schema. It decides which
// tenant is read and how a failure is reported; a model defines what is read.
type DataSource[M any, P interface {
	*M
	DataSourceModel
}] struct {
	TypeName string
	data     *providerdata.Data
}

// Metadata sets the type name.
func (d *DataSource[M, P]) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = d.TypeName
}

// Configure gets the connection from the provider.
func (d *DataSource[M, P]) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.data = providerdata.From(req.ProviderData, &resp.Diagnostics)
}

// Read reads the data source from the server.
func (d *DataSource[M, P]) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	operation := "Unable to read " + d.TypeName
	m := P(new(M))
	resp.Diagnostics.Append(req.Config.Get(ctx, m)...)
	common := m.Shared()
	common.Tenant = d.data.TenantOr(common.Tenant)
	api := d.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	tenant := providerdata.NeedTenant(&resp.Diagnostics, common.Tenant)
	if tenant == "" {
		return
	}
	if err := m.Fetch(ctx, api, tenant); err != nil {
		diagnostics.Failure{Operation: operation, Tenant: tenant, Err: err}.Add(&resp.Diagnostics, nil)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// TenantDataAttribute is the attribute tenant of a data source.
func TenantDataAttribute() schema.Attribute {
	return schema.StringAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "The tenant; the provider's `tenant` by default.",
		Validators:          []validator.String{validators.Name()},
	}
}

// SiteDataAttribute is the attribute site, for data sources that can read another site.
func SiteDataAttribute() schema.Attribute {
	return schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: "The site to read; by default the site at the endpoint.",
		Validators:          []validator.String{validators.Name()},
	}
}

// ComputedText is a computed text attribute.
func ComputedText(description string) schema.Attribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

// ComputedNumber is a computed whole number.
func ComputedNumber(description string) schema.Attribute {
	return schema.Int64Attribute{Computed: true, MarkdownDescription: description}
}

// ComputedBool is a computed boolean.
func ComputedBool(description string) schema.Attribute {
	return schema.BoolAttribute{Computed: true, MarkdownDescription: description}
}

// ComputedTextSet is a computed set of texts.
func ComputedTextSet(description string) schema.Attribute {
	return schema.SetAttribute{ElementType: types.StringType, Computed: true, MarkdownDescription: description}
}

// ComputedTextMap is a computed map of texts.
func ComputedTextMap(description string) schema.Attribute {
	return schema.MapAttribute{ElementType: types.StringType, Computed: true, MarkdownDescription: description}
}

// ComputedObject is a computed object.
func ComputedObject(description string, of map[string]schema.Attribute) schema.Attribute {
	return schema.SingleNestedAttribute{Computed: true, MarkdownDescription: description, Attributes: of}
}

// ComputedObjects is a computed list of objects.
func ComputedObjects(description string, of map[string]schema.Attribute) schema.Attribute {
	return schema.ListNestedAttribute{Computed: true, MarkdownDescription: description, NestedObject: schema.NestedAttributeObject{Attributes: of}}
}

// ComputedLike returns the attributes of a resource as computed ones of the same types, for a data
// source that reads what the resource declares. It panics at an attribute of another kind.
func ComputedLike(attributes map[string]resourceschema.Attribute) map[string]schema.Attribute {
	all := make(map[string]schema.Attribute, len(attributes))
	for name, attribute := range attributes {
		all[name] = computedLike(name, attribute)
	}
	return all
}

func computedLike(name string, attribute resourceschema.Attribute) schema.Attribute {
	is := attribute.GetMarkdownDescription()
	switch a := attribute.(type) {
	case resourceschema.StringAttribute:
		return ComputedText(is)
	case resourceschema.Int64Attribute:
		return ComputedNumber(is)
	case resourceschema.BoolAttribute:
		return ComputedBool(is)
	case resourceschema.ListAttribute:
		return schema.ListAttribute{ElementType: a.ElementType, Computed: true, MarkdownDescription: is}
	case resourceschema.SetAttribute:
		return schema.SetAttribute{ElementType: a.ElementType, Computed: true, MarkdownDescription: is}
	case resourceschema.MapAttribute:
		return schema.MapAttribute{ElementType: a.ElementType, Computed: true, MarkdownDescription: is}
	case resourceschema.SingleNestedAttribute:
		return ComputedObject(is, ComputedLike(a.Attributes))
	case resourceschema.ListNestedAttribute:
		return ComputedObjects(is, ComputedLike(a.NestedObject.Attributes))
	}
	panic("tenantobject: a data source has no attribute like " + name)
}
