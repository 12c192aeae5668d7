package provider_test

import (
	"archive/zip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// ask sends a GET to a site and returns status and body.
func ask(t *testing.T, site acctest.Server, token, path string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site.Endpoint+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

// tokensOf are the tokens of the tenant at a site.
func tokensOf(t *testing.T, site acctest.Server) []v1.Token {
	t.Helper()
	status, body := ask(t, site, site.Token, "/v1/state/tenants/"+site.Tenant+"/strongbox/tokens")
	var tokens []v1.Token
	if err := json.Unmarshal(body, &tokens); err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %v: %s", status, err, body)
	}
	return tokens
}

func roles(names ...string) tftypes.Value {
	var list []tftypes.Value
	for _, name := range names {
		list = append(list, text(name))
	}
	return tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, list)
}

// open opens the ephemeral resource at the protocol and returns its values.
func (p protocol) open(t *testing.T, name string, config values) (opened values, private []byte, told told) {
	t.Helper()
	of := p.schemas.EphemeralResourceSchemas[name].ValueType()
	resp, err := p.OpenEphemeralResource(t.Context(), &tfprotov6.OpenEphemeralResourceRequest{TypeName: name, Config: object(t, of, config)})
	if err != nil {
		t.Fatal(err)
	}
	if told.add(resp.Diagnostics); len(told.errors) > 0 {
		return nil, nil, told
	}
	result, err := resp.Result.Unmarshal(of)
	if err == nil {
		err = result.As(&opened)
	}
	if err != nil {
		t.Fatal(err)
	}
	return opened, resp.Private, told
}

// validates has the configuration of the ephemeral resource validated.
func (p protocol) validates(t *testing.T, name string, config values) (told told) {
	t.Helper()
	of := p.schemas.EphemeralResourceSchemas[name].ValueType()
	resp, err := p.ValidateEphemeralResourceConfig(t.Context(), &tfprotov6.ValidateEphemeralResourceConfigRequest{TypeName: name, Config: object(t, of, config)})
	if err != nil {
		t.Fatal(err)
	}
	told.add(resp.Diagnostics)
	return told
}

func (p protocol) close(t *testing.T, name string, private []byte) (told told) {
	t.Helper()
	resp, err := p.CloseEphemeralResource(t.Context(), &tfprotov6.CloseEphemeralResourceRequest{TypeName: name, Private: private})
	if err != nil {
		t.Fatal(err)
	}
	told.add(resp.Diagnostics)
	return told
}

// TestToken: the token works until the ephemeral resource is closed, for what it allows, and
// what is kept until then does not have it.
func TestToken(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, "acme")
	p := configured(t, site.Server)
	opened, private, told := p.open(t, "osupgrade_token", values{"name": text("dashboard"), "allow": roles("viewer")})
	if len(told.errors) > 0 {
		t.Fatal(told)
	}
	var token string
	if err := opened["token"].As(&token); err != nil || token == "" {
		t.Fatalf("the token is %q, %v", token, err)
	}
	const hosts = "/v1/state/tenants/acme/os-upgrade/hosts"
	if status, body := ask(t, site.Server, token, hosts); status != http.StatusOK {
		t.Errorf("the token is answered %d: %s", status, body)
	}
	if strings.Contains(string(private), token) {
		t.Errorf("the token is kept: %s", private)
	}
	if made := tokensOf(t, site.Server); len(made) != 1 || made[0].Expires == nil || strings.Join(made[0].Allow, " ") != "viewer" {
		t.Errorf("the tokens are %+v", made)
	}
	for range 2 { // The second time there is nothing to withdraw.
		if told := p.close(t, "osupgrade_token", private); len(told.errors)+len(told.warnings) > 0 {
			t.Error(told)
		}
	}
	if status, _ := ask(t, site.Server, token, hosts); status != http.StatusUnauthorized {
		t.Errorf("a withdrawn token is answered %d", status)
	}
	if left := tokensOf(t, site.Server); len(left) != 0 {
		t.Errorf("there are tokens left: %+v", left)
	}
}

func TestToken_refused(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, "acme")
	p := configured(t, site.Server)
	_, _, told := p.open(t, "osupgrade_token", values{"name": text("dashboard"), "allow": roles("Emperor")})
	says(t, told.errors, "allow.*Unable to make osupgrade_token.*Emperor")

	lesser := site.Server
	lesser.Token = site.TokenOf(t, "acme", access.Viewer)
	_, _, told = configured(t, lesser).open(t, "osupgrade_token", values{"name": text("dashboard"), "allow": roles("viewer")})
	says(t, told.errors, "Unable to make osupgrade_token.*403 Forbidden.*does not permit")

	// One that cannot be withdrawn ends by itself: the apply does not fail, and says so.
	_, private, _ := p.open(t, "osupgrade_token", values{"name": text("dashboard"), "allow": roles("viewer")})
	warned := configured(t, lesser).close(t, "osupgrade_token", private)
	if len(warned.errors) > 0 {
		t.Error(warned)
	}
	says(t, warned.warnings, "Unable to withdraw osupgrade_token\nThe token with the id [0-9a-f]{64} is good until its end.*credentials remove.*403")
}

// TestToken_hidden: nothing of an answer with a token is in an error, also if the answer
// cannot be read.
func TestToken_hidden(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"token": "osu_hidden", "id": 7}`, `{"token": "osu_hidden"}`, `"osu_hidden"`, `{"token": "osu_hidden"`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(server.Close)
		p := configured(t, acctest.Server{Endpoint: server.URL, Token: "t", Tenant: "acme"})
		_, _, told := p.open(t, "osupgrade_token", values{"name": text("dashboard"), "allow": roles("viewer")})
		says(t, told.errors, "Unable to make osupgrade_token")
		if strings.Contains(strings.Join(told.errors, ""), "hidden") {
			t.Errorf("the error has the token: %q", told.errors)
		}
	}
}

// TestTokenCLI applies the example: another provider works with the token, which is in no
// state, no plan and no log, and none is left.
func TestTokenCLI(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.Ephemeral)
	site := realagent.StartSite(t, "acme")
	w := acctest.NewWorkspace(t, append(site.Env(), "TF_LOG=TRACE", "TF_LOG_PATH=trace.log")...)
	w.Write(t, "main.tf", acctest.Requirement+strings.ReplaceAll(
		example(t, "ephemeral-resources/osupgrade_token/ephemeral-resource.tf"), "http://127.0.0.1:4646", site.Endpoint)+"resource \"terraform_data\" \"hosts\" { input = data.osupgrade_hosts.all.hosts }\n")
	w.Run(t, 0, "plan", "-no-color", "-out=saved")
	w.Run(t, 0, "apply", "-no-color", "saved")
	secret := regexp.MustCompile(`osu_[0-9a-f]{20,}`)
	for _, name := range []string{"terraform.tfstate", "trace.log"} {
		content, err := os.ReadFile(filepath.Join(w.Dir, name))
		if err != nil || len(content) == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		if found := secret.Find(content); found != nil {
			t.Errorf("%s has a token: %s", name, found)
		}
	}
	plan, err := zip.OpenReader(filepath.Join(w.Dir, "saved"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plan.Close() }()
	for _, file := range plan.File {
		content, err := plan.Open(file.Name)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(content); err != nil || secret.Find(text) != nil {
			t.Errorf("%s of the plan has a token, or %v", file.Name, err)
		}
	}
	if left := tokensOf(t, site.Server); len(left) != 0 {
		t.Errorf("there are tokens left: %+v", left)
	}
}
