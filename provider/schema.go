package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/providervalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// Schema defines the provider's configuration.
func (*Osupgrade) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Fleet OS upgrades as code: declare when and in which order the hosts of a tenant are upgraded, start runs, and read their results. " +
			"Works with `osupgrade-agent` and with Avassa's API.",
		Attributes: map[string]schema.Attribute{
			"endpoint": text("Address of the API, such as `https://osupgrade.example.com:4646`. Over `http` the token is sent in clear text. Required, here or as environment variable `OSUPGRADE_ENDPOINT`."),
			"tenant": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "The tenant of resources and data sources without `tenant`. Required, here or as environment variable `OSUPGRADE_TENANT`, unless each of them has `tenant`.",
				Validators:          []validator.String{validators.Name()},
			},
			"token": secret("The bearer token; the guide Authentication says how to get one. Required, here or as environment variable `OSUPGRADE_TOKEN`, unless the provider logs in or has a client certificate. Terraform writes no provider argument to a state, but the value of an ordinary variable to a saved plan: " +
				"use the environment or a variable with `ephemeral = true`."),
			"username": text("Name of the user as whom the provider logs in, once for each plan or apply; with `password`. Environment: `OSUPGRADE_USERNAME`."),
			"password": secret("Password of the user. Environment: `OSUPGRADE_PASSWORD`. As with `token`, no ordinary variable is the right place for it."),
			"login_tenant": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Tenant of the user, `*` for a user of all tenants; needed if several tenants have a user of that name. It is not the tenant of resources: that is `tenant`. " +
					"Environment: `OSUPGRADE_LOGIN_TENANT`.",
				Validators: []validator.String{validators.Rule("the name of a tenant, or *", func(text string) error {
					if !validLoginTenant(text) {
						return fmt.Errorf("%q is invalid; use %s", text, rightLoginTenant)
					}
					return nil
				})},
			},
			"role_id": text("Role-id of the approle as which the provider logs in, once for each plan or apply; with `secret_id`. It is no secret. Environment: `OSUPGRADE_ROLE_ID`."),
			"secret_id": secret("Secret-id of the approle. Environment: `OSUPGRADE_SECRET_ID`. `terraform plan` takes one of its uses, `apply` two and `destroy` three, for each provider block; " +
				"the guide Authentication says more."),
			"ca_cert_pem":  text("Certificates to trust instead of those of the system, as PEM text. Environment: `OSUPGRADE_CA_CERT_PEM`."),
			"ca_cert_file": text("Path of a file with the certificates to trust, in PEM format. Environment: `OSUPGRADE_CA_CERT_FILE`."),
			"client_cert_pem": text("Client certificate, which stands for its user instead of a token or a login, as PEM text, with those between it and its authority. With `client_key_pem` or `client_key_file`. " +
				"Where there is a token or a login too, that decides. Environment: `OSUPGRADE_CLIENT_CERT_PEM`."),
			"client_cert_file": text("Path of a file with the client certificate, in PEM format. Environment: `OSUPGRADE_CLIENT_CERT_FILE`."),
			"client_key_pem":   secret("Private key of the client certificate, as PEM text. Environment: `OSUPGRADE_CLIENT_KEY_PEM`. As with `token`, no ordinary variable is the right place for it."),
			"client_key_file":  text("Path of a file with the private key of the client certificate, in PEM format and not encrypted. Environment: `OSUPGRADE_CLIENT_KEY_FILE`."),
			"insecure": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Whether to skip the verification of the server's certificate; `false` by default. Environment: `OSUPGRADE_INSECURE`.",
			},
			"retries": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: "How often a failed request is retried, from `0` to `20`; `4` by default. Environment: `OSUPGRADE_RETRIES`.",
				Validators:          []validator.Int64{validators.Number(0, mostRetries)},
			},
			"timeout": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "How long one try of a request may take, from `1s` to `1h`; `30s` by default. Environment: `OSUPGRADE_TIMEOUT`.",
				Validators:          []validator.String{validators.Duration(time.Second, time.Hour)},
			},
			"validate_at_plan": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether the server validates each plan; `true` by default. " +
					"Set it to `false` to plan without a reachable server. Environment: `OSUPGRADE_VALIDATE_AT_PLAN`.",
			},
		},
	}
}

func text(description string) schema.Attribute {
	return schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: description,
		Validators:          []validator.String{validators.Text()},
	}
}

func secret(description string) schema.Attribute {
	return schema.StringAttribute{
		Optional: true, Sensitive: true,
		MarkdownDescription: description,
		Validators:          []validator.String{validators.Text()},
	}
}

// ConfigValidators returns the validators of several attributes together.
func (*Osupgrade) ConfigValidators(context.Context) []provider.ConfigValidator {
	return []provider.ConfigValidator{
		providervalidator.Conflicting(path.MatchRoot("ca_cert_pem"), path.MatchRoot("ca_cert_file")),
		providervalidator.Conflicting(path.MatchRoot("client_cert_pem"), path.MatchRoot("client_cert_file")),
		providervalidator.Conflicting(path.MatchRoot("client_key_pem"), path.MatchRoot("client_key_file")),
		// Attributes of two logins. That each has all of its own is for the settings to see:
		// one of them may be in the environment.
		providervalidator.Conflicting(path.MatchRoot("token"), path.MatchRoot("username"), path.MatchRoot("role_id")),
		providervalidator.Conflicting(path.MatchRoot("token"), path.MatchRoot("password"), path.MatchRoot("secret_id")),
		providervalidator.Conflicting(path.MatchRoot("username"), path.MatchRoot("secret_id")),
		providervalidator.Conflicting(path.MatchRoot("password"), path.MatchRoot("role_id")),
		providervalidator.Conflicting(path.MatchRoot("login_tenant"), path.MatchRoot("token"), path.MatchRoot("role_id")),
		providervalidator.Conflicting(path.MatchRoot("login_tenant"), path.MatchRoot("secret_id")),
	}
}
