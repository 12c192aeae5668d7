package provider

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
)

// subsystem is the name under which the client's requests are logged.
const subsystem = "client"

// outage is for how long a server that did not answer is not asked again: a server that
// is down costs a plan the time of one request, not of all.
const outage = 30 * time.Second

// connect creates the client, and warns if others on the network could read or
// change requests.
func connect(s settings, agent string, diags *diag.Diagnostics) *client.Client {
	retries := s.retries
	if retries == 0 {
		retries = -1
	}
	api, err := client.New(client.Options{
		Endpoint: s.endpoint, Token: s.token, UserAgent: agent,
		CACertPEM: s.caCertPEM, Insecure: s.insecure,
		Timeout: s.timeout, Retries: retries, Outage: outage,
		Debug: debug(s.token),
	})
	if err != nil {
		diags.AddError("Unable to configure the provider", err.Error())
		return nil
	}
	if s.insecure {
		diags.AddAttributeWarning(path.Root("insecure"), "The server's certificate is not verified",
			"Anybody on the network path can read the token and change requests and answers. Set ca_cert_pem or ca_cert_file instead.")
	}
	if api.Plaintext() {
		diags.AddAttributeWarning(path.Root("endpoint"), "The token is sent in clear text",
			"The endpoint is http and not on this machine. Use https.")
	}
	return api
}

// debug logs each request and masks the token.
func debug(token string) func(context.Context, string, map[string]any) {
	token = strings.TrimSpace(token)
	return func(ctx context.Context, message string, fields map[string]any) {
		ctx = tflog.NewSubsystem(ctx, subsystem)
		if token != "" {
			ctx = tflog.SubsystemMaskAllFieldValuesStrings(ctx, subsystem, token)
			ctx = tflog.SubsystemMaskMessageStrings(ctx, subsystem, token)
		}
		tflog.SubsystemDebug(ctx, subsystem, message, fields)
	}
}

// userAgent returns the User-Agent header in the usual form of providers.
func userAgent(getenv func(string) string, terraform, version string) string {
	agent := fmt.Sprintf("Terraform/%s (+https://www.terraform.io) terraform-provider-osupgrade/%s", terraform, version)
	if more := getenv("TF_APPEND_USER_AGENT"); more != "" {
		agent += " " + more
	}
	return agent
}
