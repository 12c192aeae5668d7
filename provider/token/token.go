// Package token has the ephemeral resources osupgrade_token and osupgrade_join_token: a token of
// a tenant, and one with which a host can join. Terraform makes them for as long as it needs
// them, and withdraws them at the end.
//
// It keeps the text of the token nowhere: Terraform writes no ephemeral value to a state or
// plan, and what is kept until the end is the id, which opens nothing.
package token

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// TypeName is the type name of the ephemeral resource.
const TypeName = "osupgrade_token"

// Ephemeral is osupgrade_token.
type Ephemeral struct{ temporary }

var (
	_ ephemeral.EphemeralResourceWithClose     = (*Ephemeral)(nil)
	_ ephemeral.EphemeralResourceWithConfigure = (*Ephemeral)(nil)
)

// New returns the ephemeral resource.
func New() ephemeral.EphemeralResource {
	return &Ephemeral{temporary{typeName: TypeName, withdraw: withdraw, command: "osupgrade-agent credentials remove"}}
}

func withdraw(ctx context.Context, api *client.Client, tenant, id string) error {
	return api.WithdrawToken(ctx, tenant, id)
}

// model is the Terraform model.
type model struct {
	Tenant  types.String `tfsdk:"tenant"`
	Name    types.String `tfsdk:"name"`
	Allow   types.Set    `tfsdk:"allow"`
	Valid   types.String `tfsdk:"valid"`
	ID      types.String `tfsdk:"id"`
	Token   types.String `tfsdk:"token"`
	Expires types.String `tfsdk:"expires"`
}

// Schema defines the ephemeral resource.
func (*Ephemeral) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A token of a tenant, for another provider or a write-only attribute. Each plan and each apply makes one and withdraws it at its end; it is in no state and no plan. " +
			"The provider's own token needs the role `admin`. Supported by `osupgrade-agent` only.",
		Attributes: map[string]schema.Attribute{
			"tenant": schema.StringAttribute{
				Optional: true, Computed: true, MarkdownDescription: "The tenant; the provider's `tenant` by default.",
				Validators: []validator.String{validators.Name()},
			},
			"name": schema.StringAttribute{
				Required: true, MarkdownDescription: "The name of who will have the token. Runs that it starts bear this name.",
				Validators: []validator.String{validators.Text()},
			},
			"allow": schema.SetAttribute{
				ElementType: types.StringType, Required: true,
				MarkdownDescription: "The roles of the token, such as `viewer` or `operator`. The guide Who May Do What has them all.",
				Validators:          []validator.Set{setvalidator.SizeAtLeast(1), setvalidator.NoNullValues()},
			},
			"valid": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "How long the token is good if nobody withdraws it, as when Terraform is killed; from `1m` to `7d`, `1h` by default. It must outlast the apply.",
				Validators:          []validator.String{validators.Duration(time.Minute, 7*24*time.Hour)},
			},
			"id":      schema.StringAttribute{Computed: true, MarkdownDescription: "The id of the token, which is no secret."},
			"token":   schema.StringAttribute{Computed: true, Sensitive: true, MarkdownDescription: "The text of the token."},
			"expires": schema.StringAttribute{Computed: true, MarkdownDescription: "When the token ends at the latest (RFC 3339)."},
		},
	}
}

// Open makes the token.
func (e *Ephemeral) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if m.Valid.IsNull() {
		m.Valid = types.StringValue(defaultValid)
	}
	wanted := v1.NewToken{Name: m.Name.ValueString(), Valid: m.Valid.ValueString()}
	resp.Diagnostics.Append(m.Allow.ElementsAs(ctx, &wanted.Allow, false)...)
	var token v1.Token
	opened := e.open(ctx, &m.Tenant, resp, func(ctx context.Context, api *client.Client, tenant string) (id string, err error) {
		token, err = api.NewToken(ctx, tenant, wanted)
		return token.ID, err
	})
	if !opened {
		return
	}
	m.ID, m.Token, m.Expires = types.StringValue(token.ID), types.StringValue(token.Token), conversion.Time(token.Expires)
	resp.Diagnostics.Append(resp.Result.Set(ctx, m)...)
}
