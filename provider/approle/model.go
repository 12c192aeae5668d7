package approle

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// model is the Terraform model of the resource.
type model struct {
	tenantobject.NamedCommon
	RoleID types.String `tfsdk:"role_id"`
	Rights
}

// Rights are the attributes of the API's object: see tenantobject.Mapping.
type Rights struct {
	TokenPolicies   types.Set    `tfsdk:"token_policies"`
	SecretIDNumUses types.Int64  `tfsdk:"secret_id_num_uses"`
	SecretIDTTL     types.String `tfsdk:"secret_id_ttl"`
	TokenTTL        types.String `tfsdk:"token_ttl"`
	TokenMaxTTL     types.String `tfsdk:"token_max_ttl"`
}

var _ tenantobject.Completed = (*model)(nil)

// Complete asks for the role-id, which the approle itself does not have.
func (m *model) Complete(ctx context.Context, api *client.Client, at tenantobject.Key) error {
	state, err := api.Approle(ctx, at.Tenant, at.Name)
	m.RoleID = types.StringNull()
	if err == nil {
		m.RoleID = types.StringValue(state.RoleID)
	}
	return err
}

// ToAPI returns the declared approle.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.Approle {
	return kind.ToAPI(ctx, m.Rights, diags)
}

// FromAPI sets the attributes from the server's approle.
func (m *model) FromAPI(ctx context.Context, server v1.Approle, all bool, diags *diag.Diagnostics) {
	kind.FromAPI(ctx, &m.Rights, server, all, diags)
}

// Loss describes the effect of a deletion.
func (m *model) Loss(tenant string) (summary, detail string) {
	return "A program loses its access", "After the deletion of approle " + m.Name.ValueString() + " of tenant " + tenant +
		", its logins end at once, and its secret-ids let nobody in. A new approle of the same name has another role-id."
}

// Schema defines the resource.
func (*Resource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	all := kind.Attributes()
	all["tenant"] = tenantobject.TenantOrAllAttribute()
	all["name"] = tenantobject.NameAttribute("The name of the approle, unique in its tenant: 1 to 63 characters: lower-case letters, digits, `-`, `.`, `_` and `@`; it begins with no `-` or `.` and does not end with `-`.", validators.LoginName())
	all["role_id"] = schema.StringAttribute{
		Computed: true, MarkdownDescription: "The role-id, which identifies the approle in a login. It is not a secret.",
		PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "An approle: a program that logs in with a role-id and a secret-id. " +
			"Make a secret-id when the program starts, with `osupgrade-agent credentials secret-id`: it is a secret with a short life, so it is none of Terraform. " +
			"The provider can grant only rights that it has itself. A plan is refused that deletes the approle as which the provider is logged in, or the last admin of a tenant.",
		Attributes: tenantobject.Attributes(all, tenantobject.WaitsForNo),
	}
}

// attributes are the attributes of the API's object. ValidateConfig applies the
// API's rules.
func attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"token_policies":     tenantobject.RequiredTextSet("The roles and policies of the approle, such as `operator`; at least one and at most 20. If you take one away, its logins lose it at once; if you add one, they end."),
		"secret_id_num_uses": tenantobject.NumberAttribute("How many logins a secret-id allows unless it says otherwise; `0` means any number. `1` by default.", 0),
		"secret_id_ttl":      tenantobject.DurationAttribute("The lifetime of a secret-id unless it says otherwise; `0s` means that it never expires. `1h` by default."),
		"token_ttl":          tenantobject.DurationAttribute("The lifetime of the token of a login, such as `8h`; a refresh extends it. `1d` by default."),
		"token_max_ttl":      tenantobject.DurationAttribute("How long after the login a refresh can extend it, such as `7d`. `30d` by default."),
	}
}
