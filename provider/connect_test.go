package provider

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

func TestConnect(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		endpoint, token string
		insecure        bool
		warnings        []string
		says            string
	}{
		"https":                 {"https://api.example.com", "t", false, nil, ""},
		"http on this machine":  {"http://127.0.0.1:4646", "t", false, nil, ""},
		"http elsewhere":        {"http://api.example.com", "t", false, []string{"The token is sent in clear text"}, ""},
		"unchecked certificate": {"https://api.example.com", "t", true, []string{"The server's certificate is not verified"}, ""},
		"no address":            {"api.example.com", "t", false, nil, "api.example.com"},
		"token in two lines":    {"https://api.example.com", "top\nsecret", false, nil, "token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			api := connect(settings{endpoint: row.endpoint, token: row.token, insecure: row.insecure, timeout: time.Second}, "test", &diags)
			if (api == nil) != (row.says != "") || diags.HasError() != (row.says != "") {
				t.Fatalf("got client %v and %v", api, diags)
			}
			if row.says != "" && !strings.Contains(diags.Errors()[0].Detail(), row.says) {
				t.Errorf("got %q, want one with %q", diags.Errors()[0].Detail(), row.says)
			}
			if strings.Contains(diagText(diags), "secret") {
				t.Errorf("the token stands in %v", diags)
			}
			var warnings []string
			for _, w := range diags.Warnings() {
				warnings = append(warnings, w.Summary())
			}
			if strings.Join(warnings, ";") != strings.Join(row.warnings, ";") {
				t.Errorf("got warnings %q, want %q", warnings, row.warnings)
			}
		})
	}
}

func diagText(diags diag.Diagnostics) string {
	var text strings.Builder
	for _, d := range diags {
		text.WriteString(d.Summary() + " " + d.Detail() + "\n")
	}
	return text.String()
}

func TestUserAgent(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	if got, want := userAgent(none, "1.11.4", "0.1.0"), "Terraform/1.11.4 (+https://www.terraform.io) terraform-provider-osupgrade/0.1.0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	some := func(name string) string { return map[string]string{"TF_APPEND_USER_AGENT": "ci/7"}[name] }
	if got := userAgent(some, "1.11.4", "0.1.0"); !strings.HasSuffix(got, "/0.1.0 ci/7") {
		t.Errorf("got %q, want it to end in ci/7", got)
	}
}

func TestMasks(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ secret, text, want string }{
		"short":           {"dev", "Bearer dev to the device, dev.", "Bearer *** to the device, ***."},
		"with a sign":     {"s.x+", "a s.x+b", "a ***b"},
		"of two lines":    {"top\nhush", "top\nhush", "***"},
		"long, in a word": {"0123456789abcdef", "x0123456789abcdefx", "x***x"},
	} {
		got := row.text
		for _, mask := range masks([]string{row.secret}) {
			got = mask.ReplaceAllString(got, "***")
		}
		if got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}
