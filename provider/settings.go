package provider

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// mostRetries is the largest value of the attribute retries. More retries would
// hide a server that never comes back.
const mostRetries = 20

// rightLoginTenant says what the attribute login_tenant may be.
const rightLoginTenant = "the name of a tenant, or * for a user of all tenants"

func validLoginTenant(text string) bool { return text == "*" || names.Valid(text) }

// model is the provider's configuration.
type model struct {
	Endpoint       types.String `tfsdk:"endpoint"`
	Tenant         types.String `tfsdk:"tenant"`
	Token          types.String `tfsdk:"token"`
	Username       types.String `tfsdk:"username"`
	Password       types.String `tfsdk:"password"`
	LoginTenant    types.String `tfsdk:"login_tenant"`
	RoleID         types.String `tfsdk:"role_id"`
	SecretID       types.String `tfsdk:"secret_id"`
	CACertPEM      types.String `tfsdk:"ca_cert_pem"`
	CACertFile     types.String `tfsdk:"ca_cert_file"`
	ClientCertPEM  types.String `tfsdk:"client_cert_pem"`
	ClientCertFile types.String `tfsdk:"client_cert_file"`
	ClientKeyPEM   types.String `tfsdk:"client_key_pem"`
	ClientKeyFile  types.String `tfsdk:"client_key_file"`
	Insecure       types.Bool   `tfsdk:"insecure"`
	Retries        types.Int64  `tfsdk:"retries"`
	Timeout        types.String `tfsdk:"timeout"`
	ValidateAtPlan types.Bool   `tfsdk:"validate_at_plan"`
}

// outside is the source of settings beside the configuration.
type outside struct {
	getenv   func(name string) string
	readFile func(name string) ([]byte, error)
}

// settings are the effective values. The client's settings are valid only if
// none of its attributes is unknown.
type settings struct {
	endpoint string
	// token is empty if there is a login, or nothing but a client certificate.
	token     string
	login     *client.Credentials
	tenant    types.String
	caCertPEM []byte
	// clientCertPEM and clientKeyPEM are empty without a client certificate.
	clientCertPEM, clientKeyPEM []byte
	insecure                    bool
	retries                     int
	timeout                     time.Duration
	validateAtPlan              bool
}

// unknown names the attributes of the client with unknown values. The client can do without
// the tenant, and without knowing when to validate.
func (m model) unknown() []string {
	var names []string
	all := reflect.ValueOf(m)
	for i := range all.NumField() {
		name := all.Type().Field(i).Tag.Get("tfsdk")
		value, ok := all.Field(i).Interface().(attr.Value)
		if ok && value.IsUnknown() && name != "tenant" && name != "validate_at_plan" {
			names = append(names, name)
		}
	}
	return names
}

// settings takes each value from the configuration or, if it is null there, from
// the environment.
func (m model) settings(from outside, diags *diag.Diagnostics) settings {
	r := reader{from, diags}
	s := settings{
		endpoint:       r.text("endpoint", m.Endpoint),
		tenant:         r.tenant(m.Tenant),
		insecure:       r.boolean("insecure", m.Insecure, false),
		retries:        r.retries(m.Retries),
		timeout:        r.timeout(m.Timeout),
		validateAtPlan: r.boolean("validate_at_plan", m.ValidateAtPlan, true),
	}
	s.caCertPEM = r.content("ca_cert", m.CACertPEM, m.CACertFile, "the trusted certificates")
	s.clientCertPEM = r.content("client_cert", m.ClientCertPEM, m.ClientCertFile, "the client certificate")
	s.clientKeyPEM = r.content("client_key", m.ClientKeyPEM, m.ClientKeyFile, "the key of the client certificate")
	r.requireBoth(m, s)
	r.require("endpoint", m.Endpoint, s.endpoint, "the address of the API, such as http://127.0.0.1:4646")
	s.token, s.login = r.login(m, len(s.clientCertPEM) > 0)
	return s
}

// certified reports whether an attribute of a client certificate is in the configuration.
func (m model) certified() bool {
	return slices.ContainsFunc([]types.String{m.ClientCertPEM, m.ClientCertFile, m.ClientKeyPEM, m.ClientKeyFile}, func(v types.String) bool { return !v.IsNull() })
}

// requireBoth reports a client certificate without its key, and a key without its certificate.
func (r reader) requireBoth(m model, s settings) {
	missing, there := "client_key", "client_cert"
	switch {
	case slices.ContainsFunc([]types.String{m.ClientCertPEM, m.ClientCertFile, m.ClientKeyPEM, m.ClientKeyFile}, types.String.IsUnknown), r.diags.HasError():
		return
	case (len(s.clientCertPEM) > 0) == (len(s.clientKeyPEM) > 0):
		return
	case len(s.clientCertPEM) == 0:
		missing, there = there, missing
	}
	r.diags.AddAttributeError(path.Root(missing+"_file"), "A client certificate needs its key",
		fmt.Sprintf("There is a %s and no %s. Set %s_file or %s_pem on the provider, or the environment variable %s or %s, too.", there, missing, missing, missing, variable(missing+"_file"), variable(missing+"_pem")))
}

type reader struct {
	outside
	diags *diag.Diagnostics
}

// login returns the token, or what to log in with. The configuration chooses one of the three
// ways by any attribute of it, the environment by the secret of it. A client certificate in the
// configuration needs neither, whatever the environment has; one of the environment needs
// neither if the environment has none.
func (r reader) login(m model, certificate bool) (token string, login *client.Credentials) {
	ways := []way{
		{values: []named{{"token", m.Token, "a bearer token"}}},
		{values: []named{{"password", m.Password, "the user's password"}, {"username", m.Username, "the name of the user"}}, more: []types.String{m.LoginTenant}},
		{values: []named{{"secret_id", m.SecretID, "a secret-id of the approle"}, {"role_id", m.RoleID, "the role-id of the approle"}}},
	}
	chosen := slices.IndexFunc(ways, way.configured)
	if chosen < 0 && !m.certified() {
		chosen = r.fromEnvironment(ways, certificate)
	}
	if chosen < 0 {
		return "", nil
	}
	texts := map[string]string{}
	for _, v := range ways[chosen].values {
		texts[v.name] = r.text(v.name, v.value)
		r.require(v.name, v.value, texts[v.name], v.what)
	}
	switch chosen {
	case 1:
		login = &client.Credentials{Username: texts["username"], Password: texts["password"], Tenant: r.text("login_tenant", m.LoginTenant)}
		if t := login.Tenant; t != "" && !validLoginTenant(t) {
			r.wrong("login_tenant", t, rightLoginTenant)
		}
	case 2:
		login = &client.Credentials{RoleID: texts["role_id"], SecretID: texts["secret_id"]}
	}
	return texts["token"], login
}

// way is one of the ways to prove who sends a request: its attributes, the secret first, and
// those that it can do without.
type way struct {
	values []named
	more   []types.String
}

type named struct {
	name  string
	value types.String
	what  string
}

// configured reports whether an attribute of the way is in the configuration.
func (w way) configured() bool {
	return slices.ContainsFunc(w.values, func(v named) bool { return !v.value.IsNull() }) ||
		slices.ContainsFunc(w.more, func(v types.String) bool { return !v.IsNull() })
}

// fromEnvironment returns the index of the way whose secret is in the environment. There must
// be exactly one, or none beside a client certificate: which of two was forgotten there, nobody
// can tell.
func (r reader) fromEnvironment(ways []way, certificate bool) int {
	chosen := -1
	for i, w := range ways {
		switch secret := w.values[0].name; {
		case r.getenv(variable(secret)) == "":
		case chosen >= 0:
			first := ways[chosen].values[0].name
			r.diags.AddError("The environment has two logins",
				fmt.Sprintf("The environment variables %s and %s are both set. Unset one of them, or set the attributes of one login on the provider.", variable(first), variable(secret)))
			return -1
		default:
			chosen = i
		}
	}
	if chosen < 0 && !certificate {
		r.diags.AddAttributeError(path.Root("token"), "The provider has no token",
			"Set token on the provider, or the environment variable OSUPGRADE_TOKEN, to a bearer token; or have the provider log in: "+
				"as a user with username and password (OSUPGRADE_USERNAME, OSUPGRADE_PASSWORD), as an approle with role_id and secret_id (OSUPGRADE_ROLE_ID, OSUPGRADE_SECRET_ID). "+
				"A client certificate does without: client_cert_file and client_key_file (OSUPGRADE_CLIENT_CERT_FILE, OSUPGRADE_CLIENT_KEY_FILE).")
	}
	return chosen
}

// variable returns the environment variable of an attribute.
func variable(name string) string { return "OSUPGRADE_" + strings.ToUpper(name) }

func (r reader) text(name string, value types.String) string {
	if value.IsNull() {
		return r.getenv(variable(name))
	}
	return value.ValueString()
}

func (r reader) tenant(value types.String) types.String {
	text := r.getenv(variable("tenant"))
	if !value.IsNull() || text == "" {
		return value
	}
	if !names.Valid(text) {
		r.wrong("tenant", text, "lower-case letters, digits and hyphens, as in acme")
	}
	return types.StringValue(text)
}

func (r reader) boolean(name string, value types.Bool, usual bool) bool {
	text := r.getenv(variable(name))
	switch {
	case !value.IsNull():
		return value.ValueBool()
	case text == "":
		return usual
	}
	parsed, err := strconv.ParseBool(text)
	if err != nil {
		r.wrong(name, text, "true or false")
	}
	return parsed
}

func (r reader) retries(value types.Int64) int {
	const usual = 4
	text := r.getenv(variable("retries"))
	switch {
	case !value.IsNull():
		return int(value.ValueInt64())
	case text == "":
		return usual
	}
	parsed, err := strconv.Atoi(text)
	if err != nil || parsed < 0 || parsed > mostRetries {
		r.wrong("retries", text, fmt.Sprintf("a number from 0 to %d", mostRetries))
	}
	return parsed
}

func (r reader) timeout(value types.String) time.Duration {
	const usual = 30 * time.Second
	text := r.text("timeout", value)
	if text == "" {
		return usual
	}
	parsed, err := window.ParseDurationWithin(text, time.Second, time.Hour)
	if err != nil {
		r.wrong("timeout", text, "a duration from 1s to 1h, such as 30s")
		return usual
	}
	return parsed
}

// content reads what is in PEM format in one of two attributes, NAME_pem and NAME_file. Either
// of them in the configuration overrides both environment variables. what names it.
func (r reader) content(name string, pem, file types.String, what string) []byte {
	if pem.IsNull() && file.IsNull() {
		pem, file = types.StringValue(r.text(name+"_pem", pem)), types.StringValue(r.text(name+"_file", file))
	}
	switch {
	case pem.ValueString() != "":
		return []byte(pem.ValueString())
	case file.ValueString() == "":
		return nil
	}
	content, err := r.readFile(file.ValueString())
	if err != nil {
		r.diags.AddAttributeError(path.Root(name+"_file"), "Unable to read "+what,
			"cannot read "+name+"_file: "+err.Error()+".\n\nName a file in PEM format.")
	}
	return content
}

func (r reader) require(name string, configured attr.Value, value, what string) {
	if value == "" && !configured.IsUnknown() {
		r.diags.AddAttributeError(path.Root(name), "The provider has no "+name,
			fmt.Sprintf("Set %s on the provider, or the environment variable %s, to %s.", name, variable(name), what))
	}
}

// wrong reports an invalid value from the environment. The schema validates the
// values of the configuration.
func (r reader) wrong(name, value, right string) {
	r.diags.AddAttributeError(path.Root(name), "Invalid value of "+variable(name),
		fmt.Sprintf("%s: %q is invalid; use %s.", variable(name), value, right))
}
