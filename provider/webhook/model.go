package webhook

import (
	"context"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// model is the Terraform model of the resource. Its secret is always null: see Secret.
type model struct {
	tenantobject.NamedCommon
	Secret        types.String `tfsdk:"secret_wo"`
	SecretVersion types.Int64  `tfsdk:"secret_wo_version"`
	Receiver
}

// Receiver are the attributes of the API's object: see tenantobject.Mapping.
type Receiver struct {
	URL         types.String `tfsdk:"url"`
	Description types.String `tfsdk:"description"`
	News        types.Set    `tfsdk:"news"`
	Disabled    types.Bool   `tfsdk:"disabled"`
}

// ToAPI returns the declared webhook, without its secret.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.Webhook {
	return kind.ToAPI(ctx, m.Receiver, diags)
}

// FromAPI sets the attributes from the server's webhook.
func (m *model) FromAPI(ctx context.Context, server v1.Webhook, all bool, diags *diag.Diagnostics) {
	kind.FromAPI(ctx, &m.Receiver, server, all, diags)
}

// Loss describes the effect of a deletion.
func (m *model) Loss(tenant string) (summary, detail string) {
	return "News are not sent any more", "After the deletion of webhook " + m.Name.ValueString() + " of tenant " + tenant +
		", its receiver gets no news, nor those that are waiting to be sent."
}

// Schema defines the resource.
func (*Resource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	all := kind.Attributes()
	all["name"] = tenantobject.NameAttribute("The name of the webhook, unique in its tenant: 1 to 63 lower-case letters, digits and hyphens.")
	maps.Copy(all, tenantobject.SecretAttributes(secret, "The key that signs what is sent: `"+v1.WebhookSecretPrefix+"` and the base64 of 24 to 64 random bytes. A new webhook needs one."))
	resp.Schema = schema.Schema{
		MarkdownDescription: "A webhook: a receiver to which the site sends a tenant's news, each as a signed POST (Standard Webhooks). A tenant has at most 20. " +
			"Supported by `osupgrade-agent` only; Avassa's own API has no such object.",
		Attributes: tenantobject.Attributes(all, tenantobject.WaitsForNo),
	}
}

// attributes are the attributes of the API's object. ValidateConfig applies the
// API's rules.
func attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"url":         tenantobject.RequiredText("Where news are sent: `https`, or `http` to a receiver on the machine of the site, which `osupgrade-agent serve --allow-local` must allow. Put no secret into it: anyone who can read the configuration sees it."),
		"description": tenantobject.TextAttribute("A text for people."),
		"news": schema.SetAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: "The types of news to send; all by default: `" + strings.Join(v1.NewsTypes(), "`, `") + "`.",
			Validators:          []validator.Set{setvalidator.SizeAtLeast(1), setvalidator.NoNullValues()},
		},
		"disabled": tenantobject.BoolAttribute("Whether to hold the news back. They are sent once it is `false` again, as far as they are still kept. `false` by default."),
	}
}
