package user

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// model is the Terraform model of the resource. Its password is always null: see Secret.
type model struct {
	tenantobject.NamedCommon
	Password        types.String `tfsdk:"password_wo"`
	PasswordVersion types.Int64  `tfsdk:"password_wo_version"`
	Rights
}

// Rights are the attributes of the API's object: see tenantobject.Mapping.
type Rights struct {
	TokenPolicies types.Set    `tfsdk:"token_policies"`
	TokenTTL      types.String `tfsdk:"token_ttl"`
	TokenMaxTTL   types.String `tfsdk:"token_max_ttl"`
}

// ToAPI returns the declared user, without its password.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.User {
	return kind.ToAPI(ctx, m.Rights, diags)
}

// FromAPI sets the attributes from the server's user.
func (m *model) FromAPI(ctx context.Context, server v1.User, all bool, diags *diag.Diagnostics) {
	kind.FromAPI(ctx, &m.Rights, server, all, diags)
}

// Loss describes the effect of a deletion.
func (m *model) Loss(tenant string) (summary, detail string) {
	return "A user loses its access", "After the deletion of user " + m.Name.ValueString() + " of tenant " + tenant + ", its logins end at once, and nobody can log in with its password."
}

// Schema defines the resource.
func (*Resource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	all := kind.Attributes()
	all["tenant"] = tenantobject.TenantOrAllAttribute()
	all["name"] = tenantobject.NameAttribute("The name of the user, unique in its tenant: 1 to 63 characters: lower-case letters, digits, `-`, `.`, `_` and `@`; it begins with no `-` or `.` and does not end with `-`.", validators.LoginName())
	maps.Copy(all, tenantobject.SecretAttributes(password, "The password: at least 8 characters and at most 1024 bytes. A new user needs one. A new password ends the user's logins."))
	resp.Schema = schema.Schema{
		MarkdownDescription: "A user: a person who logs in with a password. " +
			"The provider can grant only rights that it has itself. A plan is refused that deletes the user as which the provider is logged in, or the last admin of a tenant.",
		Attributes: tenantobject.Attributes(all, tenantobject.WaitsForNo),
	}
}

// attributes are the attributes of the API's object. ValidateConfig applies the
// API's rules.
func attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"token_policies": tenantobject.RequiredTextSet("The roles and policies of the user, such as `operator`; at least one and at most 20. If you take one away, the user's logins lose it at once; if you add one, they end."),
		"token_ttl":      tenantobject.DurationAttribute("The lifetime of the token of a login, such as `8h`; a refresh extends it. `12h` by default."),
		"token_max_ttl":  tenantobject.DurationAttribute("How long after the login a refresh can extend it, such as `7d`. `14d` by default."),
	}
}
