package provider

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
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
		CACertPEM: types.StringNull(), CACertFile: types.StringNull(), Insecure: types.BoolNull(),
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
			settings{endpoint: "https://x", token: "t", tenant: types.StringNull(), caCertPEM: []byte{}, retries: 4, timeout: 30 * time.Second, validateAtPlan: true},
		},
		"all from the environment": {func(*model) {}, everywhere(), fromEnvironment},
		"the configuration stands above the environment": {
			func(m *model) {
				*m = model{
					types.StringValue("https://x"), types.StringValue("acme"), types.StringValue("t"),
					types.StringValue("PEM"), types.StringNull(), types.BoolValue(false),
					types.Int64Value(0), types.StringValue("2s"), types.BoolValue(true),
				}
			},
			everywhere(),
			settings{endpoint: "https://x", token: "t", tenant: types.StringValue("acme"), caCertPEM: []byte("PEM"), timeout: 2 * time.Second, validateAtPlan: true},
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
		types.StringUnknown(), types.StringUnknown(), types.StringUnknown(), types.StringUnknown(), types.StringUnknown(),
		types.BoolUnknown(), types.Int64Unknown(), types.StringUnknown(), types.BoolUnknown(),
	}
	want := []string{"endpoint", "token", "ca_cert_pem", "ca_cert_file", "insecure", "retries", "timeout"}
	if got := m.unknown(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var diags diag.Diagnostics
	if m.settings(nowhere(nil, nil), &diags); diags.HasError() {
		t.Errorf("values that are not known yet are no errors, got %v", diags)
	}
}
