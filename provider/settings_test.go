package provider

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
)

// nowhere returns an outside with these variables and files.
func nowhere(env, files map[string]string) outside {
	return outside{
		getenv: func(name string) string { return env[name] },
		readFile: func(name string) ([]byte, error) {
			if content, ok := files[name]; ok {
				return []byte(content), nil
			}
			return nil, errors.New("open " + name + ": no such file")
		},
	}
}

// nothing returns an empty configuration.
func nothing() model {
	return model{
		Endpoint: types.StringNull(), Tenant: types.StringNull(), Token: types.StringNull(),
		Username: types.StringNull(), Password: types.StringNull(), LoginTenant: types.StringNull(), RoleID: types.StringNull(), SecretID: types.StringNull(),
		CACertPEM: types.StringNull(), CACertFile: types.StringNull(),
		ClientCertPEM: types.StringNull(), ClientCertFile: types.StringNull(), ClientKeyPEM: types.StringNull(), ClientKeyFile: types.StringNull(), Insecure: types.BoolNull(),
		Retries: types.Int64Null(), Timeout: types.StringNull(), ValidateAtPlan: types.BoolNull(),
	}
}

func everywhere() map[string]string {
	return map[string]string{
		"OSUPGRADE_ENDPOINT": "https://env", "OSUPGRADE_TOKEN": "envtoken", "OSUPGRADE_TENANT": "envtenant",
		"OSUPGRADE_CA_CERT_FILE": "ca.pem", "OSUPGRADE_INSECURE": "true", "OSUPGRADE_RETRIES": "7",
		"OSUPGRADE_TIMEOUT": "1m", "OSUPGRADE_VALIDATE_AT_PLAN": "false",
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	fromEnvironment := settings{
		endpoint: "https://env", token: "envtoken", tenant: types.StringValue("envtenant"), caCertPEM: []byte("FILE"),
		insecure: true, retries: 7, timeout: time.Minute,
	}
	for name, row := range map[string]struct {
		configure func(*model)
		env       map[string]string
		want      settings
	}{
		"defaults": {
			func(m *model) { m.Endpoint, m.Token = types.StringValue("https://x"), types.StringValue("t") },
			nil,
			settings{endpoint: "https://x", token: "t", tenant: types.StringNull(), retries: 4, timeout: 30 * time.Second, validateAtPlan: true},
		},
		"all from the environment": {func(*model) {}, everywhere(), fromEnvironment},
		"the configuration stands above the environment": {
			func(m *model) {
				*m = model{
					types.StringValue("https://x"), types.StringValue("acme"), types.StringValue("t"),
					types.StringNull(), types.StringNull(), types.StringNull(), types.StringNull(), types.StringNull(),
					types.StringValue("PEM"), types.StringNull(),
					types.StringValue("CERT"), types.StringNull(), types.StringValue("KEY"), types.StringNull(), types.BoolValue(false),
					types.Int64Value(0), types.StringValue("2s"), types.BoolValue(true),
				}
			},
			everywhere(),
			settings{endpoint: "https://x", token: "t", tenant: types.StringValue("acme"), caCertPEM: []byte("PEM"), clientCertPEM: []byte("CERT"), clientKeyPEM: []byte("KEY"), timeout: 2 * time.Second, validateAtPlan: true},
		},
		"certificates from a configured file": {
			func(m *model) {
				m.Endpoint, m.Token, m.CACertFile = types.StringValue("https://x"), types.StringValue("t"), types.StringValue("ca.pem")
			},
			map[string]string{"OSUPGRADE_CA_CERT_PEM": "ENV"},
			settings{endpoint: "https://x", token: "t", tenant: types.StringNull(), caCertPEM: []byte("FILE"), retries: 4, timeout: 30 * time.Second, validateAtPlan: true},
		},
		"a tenant that is not known yet is not that of the environment": {
			func(m *model) { m.Tenant = types.StringUnknown() },
			everywhere(),
			func() settings { s := fromEnvironment; s.tenant = types.StringUnknown(); return s }(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := nothing()
			row.configure(&m)
			var diags diag.Diagnostics
			got := m.settings(nowhere(row.env, map[string]string{"ca.pem": "FILE"}), &diags)
			if diags.HasError() {
				t.Fatal(diags)
			}
			if !reflect.DeepEqual(got, row.want) {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
		})
	}
}

func TestSettings_errorsNameTheVariableAndWhatIsRight(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ variable, value, says string }{
		"no endpoint":     {"OSUPGRADE_ENDPOINT", "", "OSUPGRADE_ENDPOINT, to the address"},
		"no token":        {"OSUPGRADE_TOKEN", "", "OSUPGRADE_TOKEN, to a bearer token"},
		"tenant":          {"OSUPGRADE_TENANT", "Acme", `"Acme" is invalid; use lower-case`},
		"insecure":        {"OSUPGRADE_INSECURE", "maybe", `"maybe" is invalid; use true or false`},
		"retries":         {"OSUPGRADE_RETRIES", "-1", `"-1" is invalid; use a number from 0 to 20`},
		"timeout":         {"OSUPGRADE_TIMEOUT", "soon", `"soon" is invalid; use a duration`},
		"timeout of zero": {"OSUPGRADE_TIMEOUT", "0s", `"0s" is invalid`},
		"check at plan":   {"OSUPGRADE_VALIDATE_AT_PLAN", "2", `"2" is invalid`},
		"missing file":    {"OSUPGRADE_CA_CERT_FILE", "gone.pem", "open gone.pem: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := everywhere()
			env[row.variable] = row.value
			var diags diag.Diagnostics
			nothing().settings(nowhere(env, map[string]string{"ca.pem": "FILE"}), &diags)
			if len(diags.Errors()) != 1 {
				t.Fatalf("got %d errors, want 1: %v", len(diags.Errors()), diags)
			}
			if got := diags.Errors()[0].Detail(); !strings.Contains(got, row.says) {
				t.Errorf("got %q, want one with %q", got, row.says)
			}
		})
	}
}

func TestUnknown_namesEveryAttributeThatTheClientNeeds(t *testing.T) {
	t.Parallel()
	m := model{
		types.StringUnknown(), types.StringUnknown(), types.StringUnknown(),
		types.StringUnknown(), types.StringUnknown(), types.StringUnknown(), types.StringUnknown(), types.StringUnknown(),
		types.StringUnknown(), types.StringUnknown(),
		types.StringUnknown(), types.StringUnknown(), types.StringUnknown(), types.StringUnknown(),
		types.BoolUnknown(), types.Int64Unknown(), types.StringUnknown(), types.BoolUnknown(),
	}
	want := []string{"endpoint", "token", "username", "password", "login_tenant", "role_id", "secret_id", "ca_cert_pem", "ca_cert_file", "client_cert_pem", "client_cert_file", "client_key_pem", "client_key_file", "insecure", "retries", "timeout"}
	if got := m.unknown(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var diags diag.Diagnostics
	if m.settings(nowhere(nil, nil), &diags); diags.HasError() {
		t.Errorf("values that are not known yet are no errors, got %v", diags)
	}
}

// TestSettings_login: the configuration chooses how to log in by any attribute of it, the
// environment by its secret, and each of its attributes may be in either place.
func TestSettings_login(t *testing.T) {
	t.Parallel()
	known := types.StringValue
	user := &client.Credentials{Username: "ann", Password: "pass"}
	approle := &client.Credentials{RoleID: "role", SecretID: "secret"}
	for name, row := range map[string]struct {
		configure func(*model)
		env       string
		token     string
		want      *client.Credentials
	}{
		"a user":                                        {func(m *model) { m.Username, m.Password = known("ann"), known("pass") }, "", "", user},
		"a user, of the environment":                    {func(*model) {}, "USERNAME=ann PASSWORD=pass", "", user},
		"a password of the environment":                 {func(m *model) { m.Username = known("ann") }, "USERNAME=eve PASSWORD=pass", "", user},
		"a user of a tenant":                            {func(*model) {}, "USERNAME=ann PASSWORD=pass LOGIN_TENANT=beta", "", &client.Credentials{Username: "ann", Password: "pass", Tenant: "beta"}},
		"a user of all tenants":                         {func(m *model) { m.LoginTenant = known("*") }, "USERNAME=ann PASSWORD=pass", "", &client.Credentials{Username: "ann", Password: "pass", Tenant: "*"}},
		"an approle":                                    {func(m *model) { m.RoleID, m.SecretID = known("role"), known("secret") }, "", "", approle},
		"a secret-id of the environment":                {func(m *model) { m.RoleID = known("role") }, "SECRET_ID=secret", "", approle},
		"an approle, of the environment":                {func(*model) {}, "ROLE_ID=role SECRET_ID=secret", "", approle},
		"the configuration beside a token":              {func(m *model) { m.RoleID = known("role") }, "SECRET_ID=secret TOKEN=t", "", approle},
		"a token beside a login":                        {func(m *model) { m.Token = known("t") }, "SECRET_ID=secret ROLE_ID=role PASSWORD=pass", "t", nil},
		"a token beside a name":                         {func(*model) {}, "TOKEN=t USERNAME=ann ROLE_ID=role", "t", nil},
		"a password that is not known yet":              {func(m *model) { m.Username, m.Password = known("ann"), types.StringUnknown() }, "PASSWORD=pass TOKEN=t", "", &client.Credentials{Username: "ann"}},
		"a secret-id that is not known yet":             {func(m *model) { m.SecretID = types.StringUnknown() }, "ROLE_ID=role TOKEN=t", "", &client.Credentials{RoleID: "role"}},
		"a login tenant that is unknown yet":            {func(m *model) { m.LoginTenant = types.StringUnknown() }, "USERNAME=ann PASSWORD=pass LOGIN_TENANT=beta", "", user},
		"a certificate":                                 {func(m *model) { m.ClientCertPEM, m.ClientKeyPEM = known("C"), known("K") }, "", "", nil},
		"a certificate, of the environment":             {func(*model) {}, "CLIENT_CERT_PEM=C CLIENT_KEY_PEM=K", "", nil},
		"a certificate, and a token of the environment": {func(m *model) { m.ClientCertPEM = known("C") }, "CLIENT_KEY_PEM=K TOKEN=t", "", nil},
		"a certificate and a token":                     {func(m *model) { m.ClientCertPEM, m.Token = known("C"), known("t") }, "CLIENT_KEY_PEM=K", "t", nil},
		"a certificate and a token of the environment":  {func(*model) {}, "CLIENT_CERT_PEM=C CLIENT_KEY_PEM=K TOKEN=t", "t", nil},
		"a certificate that is not known yet":           {func(m *model) { m.ClientCertPEM = types.StringUnknown() }, "TOKEN=t", "", nil},
		"a token that is not known, but then":           {func(m *model) { m.Token = types.StringUnknown() }, "ROLE_ID=role SECRET_ID=secret TOKEN=t", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"OSUPGRADE_ENDPOINT": "https://env"}
			for setting := range strings.FieldsSeq(row.env) {
				name, value, _ := strings.Cut(setting, "=")
				env["OSUPGRADE_"+name] = value
			}
			m := nothing()
			row.configure(&m)
			var diags diag.Diagnostics
			got := m.settings(nowhere(env, nil), &diags)
			if diags.HasError() {
				t.Fatal(diags)
			}
			if got.token != row.token || !reflect.DeepEqual(got.login, row.want) {
				t.Errorf("got token %q and login %+v", got.token, got.login)
			}
		})
	}
}

func TestSettings_loginErrorsNameWhatIsMissing(t *testing.T) {
	t.Parallel()
	known := types.StringValue
	for name, row := range map[string]struct {
		configure func(*model)
		env, says string
	}{
		"nothing":              {func(*model) {}, "", "OSUPGRADE_TOKEN, to a bearer token; or have the provider log in"},
		"no password":          {func(m *model) { m.Username = known("ann") }, "", "Set password on the provider, or the environment variable OSUPGRADE_PASSWORD"},
		"no username":          {func(*model) {}, "PASSWORD=pass", "Set username on the provider, or the environment variable OSUPGRADE_USERNAME"},
		"no secret-id":         {func(m *model) { m.RoleID = known("r") }, "TOKEN=t", "environment variable OSUPGRADE_SECRET_ID"},
		"no role-id":           {func(*model) {}, "SECRET_ID=s", "environment variable OSUPGRADE_ROLE_ID"},
		"no key":               {func(m *model) { m.ClientCertPEM = known("C") }, "", "There is a client_cert and no client_key. Set client_key_file or client_key_pem on the provider, or the environment variable OSUPGRADE_CLIENT_KEY_FILE"},
		"no certificate":       {func(*model) {}, "TOKEN=t CLIENT_KEY_PEM=K", "There is a client_key and no client_cert."},
		"no file of the key":   {func(*model) {}, "CLIENT_CERT_PEM=C CLIENT_KEY_FILE=gone.key", "cannot read client_key_file: open gone.key: no such file"},
		"two of them":          {func(*model) {}, "SECRET_ID=s TOKEN=t", "OSUPGRADE_TOKEN and OSUPGRADE_SECRET_ID are both set"},
		"a tenant that is not": {func(*model) {}, "USERNAME=ann PASSWORD=p LOGIN_TENANT=A_B", `OSUPGRADE_LOGIN_TENANT: "A_B" is invalid`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"OSUPGRADE_ENDPOINT": "https://env"}
			for setting := range strings.FieldsSeq(row.env) {
				name, value, _ := strings.Cut(setting, "=")
				env["OSUPGRADE_"+name] = value
			}
			m := nothing()
			row.configure(&m)
			var diags diag.Diagnostics
			m.settings(nowhere(env, nil), &diags)
			if len(diags.Errors()) != 1 || !strings.Contains(diags.Errors()[0].Detail(), row.says) {
				t.Errorf("got %v, want one error with %q", diags, row.says)
			}
		})
	}
}
