package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/providervalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
)

// Schema describes the provider's configuration.
func (*Osupgrade) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Fleet OS upgrades as code: when the hosts of a tenant may be upgraded, starting a run, and what came of it. " +
			"Works with `osupgrade-agent` and with Avassa's API.",
		Attributes: map[string]schema.Attribute{
			"endpoint": text("Address of the API, such as `https://osupgrade.example.com:4646`. Over `http` the token is sent in clear. Environment: `OSUPGRADE_ENDPOINT`."),
			"tenant": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "The tenant of resources and data sources that name none. Environment: `OSUPGRADE_TENANT`.",
				Validators:          []validator.String{attribute.Name()},
			},
			"token": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "The bearer token. It is never written into a state or a plan. Environment: `OSUPGRADE_TOKEN`.",
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"ca_cert_pem":  text("Certificates to trust instead of the system's, as PEM text. Environment: `OSUPGRADE_CA_CERT_PEM`."),
			"ca_cert_file": text("Path of a file with such certificates. Environment: `OSUPGRADE_CA_CERT_FILE`."),
			"insecure": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Whether the server's certificate is taken unchecked; `false` by default. Environment: `OSUPGRADE_INSECURE`.",
			},
			"retries": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: "How often a failed request is tried again, from `0` to `20`; `4` by default. Environment: `OSUPGRADE_RETRIES`.",
				Validators:          []validator.Int64{int64validator.Between(0, mostRetries)},
			},
			"timeout": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "How long one try of a request may take, such as `30s`, which is the default. Environment: `OSUPGRADE_TIMEOUT`.",
				Validators:          []validator.String{attribute.Rule("a length of time, such as 30s", timeoutRule)},
			},
			"validate_at_plan": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether a plan asks the server to check what it would write; `true` by default. " +
					"Turn it off to plan where the server cannot be reached. Environment: `OSUPGRADE_VALIDATE_AT_PLAN`.",
			},
		},
	}
}

func text(description string) schema.Attribute {
	return schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: description,
		Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
	}
}

// ConfigValidators are the rules that look at several attributes.
func (*Osupgrade) ConfigValidators(context.Context) []provider.ConfigValidator {
	return []provider.ConfigValidator{
		providervalidator.Conflicting(path.MatchRoot("ca_cert_pem"), path.MatchRoot("ca_cert_file")),
	}
}
