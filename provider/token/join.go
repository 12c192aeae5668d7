package token

import (
	"context"
	"errors"
	"net/http"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// JoinTypeName is the type name of the ephemeral resource of join tokens.
const JoinTypeName = "osupgrade_join_token"

// Join is osupgrade_join_token.
type Join struct{ temporary }

var (
	_ ephemeral.EphemeralResourceWithClose     = (*Join)(nil)
	_ ephemeral.EphemeralResourceWithConfigure = (*Join)(nil)
)

// NewJoin returns the ephemeral resource of join tokens.
func NewJoin() ephemeral.EphemeralResource {
	return &Join{temporary{typeName: JoinTypeName, withdraw: withdrawJoin, command: "osupgrade-agent credentials join-token remove"}}
}

// withdrawJoin withdraws a join token. A host that has joined with it stays.
func withdrawJoin(ctx context.Context, api *client.Client, tenant, id string) error {
	err := api.RemoveJoinToken(ctx, tenant, id)
	if client.HasStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// joinModel is the Terraform model.
type joinModel struct {
	Tenant      types.String `tfsdk:"tenant"`
	Host        types.String `tfsdk:"host"`
	Application types.String `tfsdk:"application"`
	Valid       types.String `tfsdk:"valid"`
	Replace     types.Bool   `tfsdk:"replace"`
	ID          types.String `tfsdk:"id"`
	Token       types.String `tfsdk:"token"`
	Expires     types.String `tfsdk:"expires"`
}

// Schema defines the ephemeral resource.
func (*Join) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A join token: one host can join the site with it, once. Each plan and each apply makes one and withdraws it at its end, so the host must join while Terraform runs; a host that has joined stays. " +
			"The token is in no state and no plan. The provider's own token needs the role `admin` or `join`. Supported by `osupgrade-agent` only.",
		Attributes: map[string]schema.Attribute{
			"tenant": schema.StringAttribute{
				Optional: true, Computed: true, MarkdownDescription: "The tenant of the host; the provider's `tenant` by default.",
				Validators: []validator.String{validators.Name()},
			},
			"host": schema.StringAttribute{
				Required: true, MarkdownDescription: "The name of the host that may join, or a pattern such as `web-*`.",
				Validators: []validator.String{validators.Rule("the name of a host or a pattern", func(text string) error {
					if v1.ValidHostPattern(text) {
						return nil
					}
					return errors.New(`it is neither the name of a host nor a pattern; use letters, digits, "-", "_" and ".", and "*" for any of them`)
				})},
			},
			"application": schema.StringAttribute{
				Required: true, MarkdownDescription: "The worker application of the host.", Validators: []validator.String{validators.Name()},
			},
			"valid": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "How long the token can be used if nobody withdraws it, as when Terraform is killed; from `1m` to `7d`, `1h` by default. It must outlast the apply.",
				Validators:          []validator.String{validators.Duration(window.MinDuration, window.MaxDuration)},
			},
			"replace": schema.BoolAttribute{
				Optional: true, MarkdownDescription: "Whether a host that already has a key may join. The old key is revoked once the host has connected with the new one. `false` by default.",
			},
			"id":      schema.StringAttribute{Computed: true, MarkdownDescription: "The id of the token, which is no secret."},
			"token":   schema.StringAttribute{Computed: true, Sensitive: true, MarkdownDescription: "The text of the token, for `osupgrade-agent worker join --token-file`."},
			"expires": schema.StringAttribute{Computed: true, MarkdownDescription: "When the token ends at the latest (RFC 3339)."},
		},
	}
}

// Open makes the token.
func (j *Join) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m joinModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if m.Valid.IsNull() {
		m.Valid = types.StringValue(defaultValid)
	}
	var token v1.JoinToken
	opened := j.open(ctx, &m.Tenant, resp, func(ctx context.Context, api *client.Client, tenant string) (id string, err error) {
		token, err = api.NewJoinToken(ctx, tenant, v1.NewJoinToken{
			Host: m.Host.ValueString(), Application: m.Application.ValueString(), Valid: m.Valid.ValueString(), Replace: m.Replace.ValueBool(),
		})
		if err == nil && (token.ID == "" || token.Token == "") {
			err = errNoToken
		}
		return token.ID, err
	})
	if !opened {
		return
	}
	m.ID, m.Token, m.Expires = types.StringValue(token.ID), types.StringValue(token.Token), conversion.Time(&token.Expires)
	resp.Diagnostics.Append(resp.Result.Set(ctx, m)...)
}
