package tenant

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// model is the Terraform model of the resource. Its name stands in the place of the tenant that
// other resources have.
type model struct {
	Name              types.String `tfsdk:"name"`
	OverwriteExisting types.Bool   `tfsdk:"overwrite_existing"`
	Timeouts          types.Object `tfsdk:"timeouts"`
	ForceDestroy      types.Bool   `tfsdk:"force_destroy"`
	Restore           types.Bool   `tfsdk:"restore"`
	Properties
}

// Properties are the attributes of the API's object: see tenantobject.Mapping.
type Properties struct {
	DescriptiveName types.String `tfsdk:"descriptive_name"`
}

var (
	_ tenantobject.Forcible         = (*model)(nil)
	_ tenantobject.Begun[v1.Tenant] = (*model)(nil)
)

// Shared returns the common attributes.
func (m *model) Shared() *tenantobject.Common {
	return &tenantobject.Common{Tenant: m.Name, OverwriteExisting: m.OverwriteExisting, Timeouts: m.Timeouts}
}

// Force returns whether to delete the tenant with its hosts and during a run.
func (m *model) Force() types.Bool { return m.ForceDestroy }

// Begin returns the object as its creation writes it: a removed tenant is restored, if that is
// declared and the site keeps one.
func (m *model) Begin(ctx context.Context, api *client.Client) (client.Object[v1.Tenant], error) {
	if !m.Restore.ValueBool() {
		return client.Tenants, nil
	}
	all, err := api.Tenants(ctx)
	if slices.ContainsFunc(all, func(t v1.TenantState) bool { return t.Name == m.Name.ValueString() && t.Status == v1.TenantRemoved }) {
		return client.Tenants.Restoring(), err
	}
	return client.Tenants, err
}

// ToAPI returns the declared tenant.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.Tenant {
	return kind.ToAPI(ctx, m.Properties, diags)
}

// FromAPI sets the attributes from the server's tenant.
func (m *model) FromAPI(ctx context.Context, server v1.Tenant, all bool, diags *diag.Diagnostics) {
	kind.FromAPI(ctx, &m.Properties, server, all, diags)
}

// Loss describes the effect of a deletion.
func (m *model) Loss(tenant string) (summary, detail string) {
	detail = "After the deletion of tenant " + tenant + ", nobody and no host is let in: its users, approles, policies, tokens and the keys of its hosts are gone. " +
		"The site keeps its log and its configuration; a tenant of the same name takes them up with restore = true."
	if m.ForceDestroy.ValueBool() {
		detail += " With force_destroy, a run in progress is aborted."
	}
	return "A tenant is removed", detail
}

// Schema defines the resource.
func (*Resource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	all := kind.Attributes()
	all["name"] = tenantobject.NameAttribute("The name of the tenant: 1 to 63 lower-case letters, digits and hyphens.")
	all["force_destroy"] = tenantobject.BoolAttribute("Whether to delete the tenant even if it has hosts or a run is in progress: the run is aborted, and the keys of the hosts are withdrawn. `false` by default.")
	all["restore"] = tenantobject.BoolAttribute("Whether the creation takes up the log and the configuration that the site keeps of a removed tenant of this name, if there is one. `false` by default: the creation is then refused.")
	attributes := tenantobject.Attributes(all, tenantobject.WaitsForRun)
	delete(attributes, "tenant")
	resp.Schema = schema.Schema{
		MarkdownDescription: "A tenant of a site: an owner of hosts. The provider's token must be one of all tenants. A tenant in the configuration of the site (`tenants` of `osupgrade-agent serve`) can be changed here, but not removed.",
		Attributes:          attributes,
	}
}

// attributes are the attributes of the API's object. ValidateConfig applies the
// API's rules.
func attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"descriptive_name": tenantobject.TextAttribute("A name for people, at most 200 characters."),
	}
}
