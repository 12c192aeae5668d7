package token

import (
	"context"
	"errors"
	"net/http"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
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

	_ ephemeral.EphemeralResourceWithValidateConfig = (*Join)(nil)
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
	MaxHosts    types.Int64  `tfsdk:"max_hosts"`
	Labels      types.Map    `tfsdk:"labels"`
	Approve     types.Bool   `tfsdk:"approve"`
	Valid       types.String `tfsdk:"valid"`
	Replace     types.Bool   `tfsdk:"replace"`
	ID          types.String `tfsdk:"id"`
	Token       types.String `tfsdk:"token"`
	Expires     types.String `tfsdk:"expires"`
}

// wanted returns what the model asks of the site.
func (m joinModel) wanted(ctx context.Context) (v1.NewJoinToken, diag.Diagnostics) {
	var labels map[string]string
	told := m.Labels.ElementsAs(ctx, &labels, false)
	return v1.NewJoinToken{
		Host: m.Host.ValueString(), Application: m.Application.ValueString(), MaxHosts: int(m.MaxHosts.ValueInt64()), Labels: labels,
		Approve: m.Approve.ValueBool(), Valid: m.Valid.ValueString(), Replace: m.Replace.ValueBool(),
	}, told
}

// Schema defines the ephemeral resource.
func (*Join) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A join token: one host can join the site with it, or up to `max_hosts`, each once and with a key of its own. Each plan and each apply makes one and withdraws it at its end, so the hosts must join while Terraform runs; a host that has joined stays. " +
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
			"max_hosts": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "How many hosts may join whose names match `host`, from `1` to `1000`; `1` by default.",
				Validators: []validator.Int64{validators.Number(1, v1.MaxJoinHosts)},
			},
			"labels": schema.MapAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "Labels of each host that joins, by which a rollout can select it. They win over what the host reports of itself.",
				Validators:          []validator.Map{mapvalidator.NoNullValues()},
			},
			"approve": schema.BoolAttribute{
				Optional: true, MarkdownDescription: "Whether each host waits until a person has approved it with `osupgrade-agent approve-host`. `false` by default. A host that still waits when the token is withdrawn must join again.",
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

// ValidateConfig checks what depends on several attributes, by the rules of the site.
func (*Join) ValidateConfig(ctx context.Context, req ephemeral.ValidateConfigRequest, resp *ephemeral.ValidateConfigResponse) {
	if !req.Config.Raw.IsFullyKnown() {
		return // The site checks it.
	}
	var m joinModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	wanted, told := m.wanted(ctx)
	resp.Diagnostics.Append(told...)
	if resp.Diagnostics.HasError() || !v1.ValidHostPattern(wanted.Host) || wanted.MaxHosts < 0 || wanted.MaxHosts > v1.MaxJoinHosts {
		return // The attributes' own validators tell that.
	}
	for _, problem := range wanted.Validate() {
		switch problem.Field {
		case "host", "labels":
			resp.Diagnostics.AddAttributeError(path.Root(problem.Field), "Invalid "+problem.Field, problem.Message)
		case "max-hosts":
			resp.Diagnostics.AddAttributeError(path.Root("max_hosts"), "Invalid max_hosts", problem.Message)
		}
	}
}

// Open makes the token.
func (j *Join) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m joinModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if m.Valid.IsNull() {
		m.Valid = types.StringValue(defaultValid)
	}
	wanted, told := m.wanted(ctx)
	if resp.Diagnostics.Append(told...); resp.Diagnostics.HasError() {
		return
	}
	var token v1.JoinToken
	opened := j.open(ctx, &m.Tenant, resp, func(ctx context.Context, api *client.Client, tenant string) (id string, err error) {
		token, err = api.NewJoinToken(ctx, tenant, wanted)
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
