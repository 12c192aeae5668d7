package provider

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
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
		Endpoint: s.endpoint, Token: s.token, Login: s.login, UserAgent: agent,
		CACertPEM: s.caCertPEM, ClientCertPEM: s.clientCertPEM, ClientKeyPEM: s.clientKeyPEM, Insecure: s.insecure,
		Timeout: s.timeout, Retries: retries, Outage: outage,
		Debug: debug(s.secrets()),
	})
	if err != nil {
		diags.AddError("Unable to configure the provider", err.Error())
		return nil
	}
	if s.insecure {
		diags.AddAttributeWarning(path.Root("insecure"), "The server's certificate is not verified",
			"Anybody on the network path can read the token or the login and change requests and answers. Set ca_cert_pem or ca_cert_file instead.")
	}
	if api.Plaintext() {
		what := "token"
		if s.login != nil {
			what = "login"
		}
		diags.AddAttributeWarning(path.Root("endpoint"), "The "+what+" is sent in clear text",
			"The endpoint is http and not on this machine. Use https.")
	}
	return api
}

// secrets are the settings that no log may show.
func (s settings) secrets() []string {
	secrets := []string{strings.TrimSpace(s.token), strings.TrimSpace(string(s.clientKeyPEM))}
	if s.login != nil {
		secrets = append(secrets, strings.TrimSpace(s.login.Password), strings.TrimSpace(s.login.SecretID))
	}
	return slices.DeleteFunc(secrets, func(secret string) bool { return secret == "" })
}

// debug logs each request and masks the secrets. The client hides the token of a login.
func debug(secrets []string) func(context.Context, string, map[string]any) {
	masked := masks(secrets)
	return func(ctx context.Context, message string, fields map[string]any) {
		ctx = tflog.NewSubsystem(ctx, subsystem)
		ctx = tflog.SubsystemMaskAllFieldValuesRegexes(ctx, subsystem, masked...)
		ctx = tflog.SubsystemMaskMessageRegexes(ctx, subsystem, masked...)
		tflog.SubsystemDebug(ctx, subsystem, message, fields)
	}
}

// shortSecret is the length below which a secret may be a part of other words.
const shortSecret = 12

// masks match the secrets. A short one, such as the token dev of a test, is no part of device.
func masks(secrets []string) []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, secret := range secrets {
		pattern := regexp.QuoteMeta(secret)
		if len(secret) < shortSecret && regexp.MustCompile(`^\w(.*\w)?$`).MatchString(secret) {
			pattern = `\b` + pattern + `\b`
		}
		all = append(all, regexp.MustCompile(pattern))
	}
	return all
}

// userAgent returns the User-Agent header in the usual form of providers.
func userAgent(getenv func(string) string, terraform, version string) string {
	agent := fmt.Sprintf("Terraform/%s (+https://www.terraform.io) terraform-provider-osupgrade/%s", terraform, version)
	if more := getenv("TF_APPEND_USER_AGENT"); more != "" {
		agent += " " + more
	}
	return agent
}
