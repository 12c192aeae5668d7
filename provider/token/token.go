// Package token is the ephemeral resource osupgrade_token: a token of a tenant that Terraform
// makes for as long as it needs it and withdraws at the end.
//
// It keeps the text of the token nowhere: Terraform writes no ephemeral value to a state or
// plan, and what is kept until the end is the id, which opens nothing.
package token

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// TypeName is the type name of the ephemeral resource.
const TypeName = "osupgrade_token"

// usual is how long a token is good that is not withdrawn, as after a killed Terraform.
const usual = "1h"

// limit bounds each request.
const limit = 2 * time.Minute

// Ephemeral is osupgrade_token.
type Ephemeral struct {
	data *providerdata.Data
}

var (
	_ ephemeral.EphemeralResourceWithClose     = (*Ephemeral)(nil)
	_ ephemeral.EphemeralResourceWithConfigure = (*Ephemeral)(nil)
)

// New returns the ephemeral resource.
func New() ephemeral.EphemeralResource { return &Ephemeral{} }

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

// Metadata sets the type name.
func (*Ephemeral) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = TypeName
}

// Configure gets the connection from the provider.
func (e *Ephemeral) Configure(_ context.Context, req ephemeral.ConfigureRequest, resp *ephemeral.ConfigureResponse) {
	e.data = providerdata.From(req.ProviderData, &resp.Diagnostics)
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

// made is what is kept of a token until it is withdrawn.
type made struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
}

// key is where it is kept.
const key = "token"

// Open makes the token.
func (e *Ephemeral) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	const operation = "Unable to make " + TypeName
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	m.Tenant = e.data.TenantOr(m.Tenant)
	tenant := providerdata.NeedTenant(&resp.Diagnostics, m.Tenant)
	if m.Valid.IsNull() {
		m.Valid = types.StringValue(usual)
	}
	wanted := v1.NewToken{Name: m.Name.ValueString(), Valid: m.Valid.ValueString()}
	resp.Diagnostics.Append(m.Allow.ElementsAs(ctx, &wanted.Allow, false)...)
	api := e.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	token, err := api.NewToken(ctx, tenant, wanted)
	if err != nil {
		diagnostics.Failure{Operation: operation, Tenant: tenant, Err: err}.Add(&resp.Diagnostics, diagnostics.Field)
		return
	}
	kept, err := json.Marshal(made{tenant, token.ID})
	if err != nil {
		resp.Diagnostics.AddError(operation, "cannot keep the id of the token: "+err.Error())
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, key, kept)...)
	m.ID, m.Token, m.Expires = types.StringValue(token.ID), types.StringValue(token.Token), conversion.Time(token.Expires)
	resp.Diagnostics.Append(resp.Result.Set(ctx, m)...)
}

// Close withdraws the token. A failure is a warning: what Terraform did with the token is
// done, and the token ends by itself.
func (e *Ephemeral) Close(ctx context.Context, req ephemeral.CloseRequest, resp *ephemeral.CloseResponse) {
	const operation = "Unable to withdraw " + TypeName
	kept, problems := req.Private.GetKey(ctx, key)
	resp.Diagnostics.Append(problems...)
	var token made
	if err := json.Unmarshal(kept, &token); err != nil {
		resp.Diagnostics.AddError(operation, "cannot read the id of the token: "+err.Error())
	}
	api := e.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := api.WithdrawToken(ctx, token.Tenant, token.ID); err != nil {
		diagnostics.Failure{Operation: operation, Tenant: token.Tenant, Err: err}.Warn(&resp.Diagnostics,
			"The token with the id "+token.ID+" is good until its end. To withdraw it now: osupgrade-agent credentials remove "+token.ID+".")
	}
}
