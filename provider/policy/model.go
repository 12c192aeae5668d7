package policy

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// model is the Terraform model of the resource.
type model struct {
	tenantobject.NamedCommon
	ForceDestroy types.Bool `tfsdk:"force_destroy"`
	Rules
}

// Rules are the attributes of the API's object: see tenantobject.Mapping.
type Rules struct {
	RestAPI types.Object `tfsdk:"rest_api"`
}

var _ tenantobject.Forcible = (*model)(nil)

// Force returns whether to delete the policy while somebody names it.
func (m *model) Force() types.Bool { return m.ForceDestroy }

// ToAPI returns the declared policy.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.Policy {
	return kind.ToAPI(ctx, m.Rules, diags)
}

// FromAPI sets the attributes from the server's policy.
func (m *model) FromAPI(ctx context.Context, server v1.Policy, all bool, diags *diag.Diagnostics) {
	kind.FromAPI(ctx, &m.Rules, server, all, diags)
}

// Loss describes the effect of a deletion.
func (m *model) Loss(tenant string) (summary, detail string) {
	if !m.ForceDestroy.ValueBool() {
		return "", ""
	}
	return "Whoever names the policy loses its rights", "After the deletion of policy " + m.Name.ValueString() + " of tenant " + tenant +
		", it allows nothing to the users, approles and tokens that still name it."
}

// Schema defines the resource.
func (*Resource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	all := kind.Attributes()
	all["name"] = tenantobject.NameAttribute("The name of the policy, unique in its tenant: 1 to 63 lower-case letters, digits and hyphens, and not the name of a role.")
	all["force_destroy"] = tenantobject.BoolAttribute("Whether to delete the policy even if users, approles or tokens name it; it then allows them nothing. `false` by default.")
	resp.Schema = schema.Schema{
		MarkdownDescription: "A policy of a tenant: rules that say which requests are allowed. Users, approles and tokens may name it besides roles. " +
			"A change counts from the next request on. The provider can grant only rights that it has itself.",
		Attributes: tenantobject.Attributes(all, tenantobject.WaitsForNo),
	}
}

// attributes are the attributes of the API's object. ValidateConfig applies the
// API's rules.
func attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"rest_api": tenantobject.Typed(schema.SingleNestedAttribute{
			Required: true, MarkdownDescription: "The rules for requests.",
			Attributes: map[string]schema.Attribute{
				"rules": tenantobject.Typed(schema.ListNestedAttribute{
					Required:            true,
					MarkdownDescription: "The rules, at most 100, in any order; `[]` allows nothing. Of the rules that match a path and name the operation, the most specific decides; between two with the same path, `reject` wins.",
					NestedObject:        schema.NestedAttributeObject{Attributes: ruleAttributes()},
					Validators:          []validator.List{listvalidator.NoNullValues()},
				}),
			},
		}),
	}
}

func ruleAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"path":        tenantobject.RequiredText("A path of the API, with or without `/tenants/NAME`. `*` stands for any one name, and `**` at its end for any number of names."),
		"description": tenantobject.TextAttribute("A text for people."),
		"operations": schema.MapAttribute{
			ElementType: types.StringType, Required: true,
			MarkdownDescription: "`allow` or `reject` by operation: `read` (GET), `create` (POST below `/v1/config`), `update` (PUT, PATCH), `delete`, `execute` (any other POST), or `all` for the operations that are not named.",
			Validators:          []validator.Map{mapvalidator.NoNullValues()},
		},
	}
}
