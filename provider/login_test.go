package provider_test

import (
	"archive/zip"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	"github.com/osupgrade/terraform-provider-osupgrade/provider"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

const aPassword = "acctest-password-91f3"

// loggedIn is the environment of a provider that logs in at a server.
func loggedIn(server acctest.Server, settings ...string) []string {
	return append([]string{"OSUPGRADE_ENDPOINT=" + server.Endpoint, "OSUPGRADE_TENANT=" + server.Tenant, "OSUPGRADE_RETRIES=0"}, settings...)
}

// TestLogin_ofAnAgent: plan, apply and destroy on a real agent, as a user and as an approle,
// take one login for each time that Terraform configures the provider: one for a plan, two
// for an apply, three for a destruction. Neither what the provider logs in with nor its token is kept anywhere.
func TestLogin_ofAnAgent(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, "acme")
	if _, err := site.Logins.WriteUser(t.Context(), principal.User{Tenant: "acme", Name: "ann", Allow: []access.Role{access.Viewer, access.Writes}}, aPassword, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	role, secret := site.Secret(t, "acme", "terraform", 6, access.Viewer, access.Writes)
	for name, row := range map[string]struct {
		settings []string
		provider string
	}{
		"user":    {[]string{"OSUPGRADE_PASSWORD=" + aPassword}, "provider \"osupgrade\" {\n  username = \"ann\"\n}\n"},
		"approle": {[]string{"OSUPGRADE_ROLE_ID=" + role, "OSUPGRADE_SECRET_ID=" + secret}, ""},
	} {
		before := len(tokensOf(t, site.Server))
		w := acctest.NewWorkspace(t, append(loggedIn(site.Server, row.settings...), "TF_LOG=TRACE", "TF_LOG_PATH=trace.log")...)
		w.Write(t, "main.tf", acctest.Requirement+row.provider+`
resource "osupgrade_calendar" "many" {
  count = 20
  name  = "`+name+`${count.index}"
  kind  = "freeze"
}
`)
		for _, row := range []struct {
			args   []string
			logins int
		}{
			{[]string{"plan", "-no-color", "-out=saved"}, 1},
			{[]string{"apply", "-no-color", "saved"}, 2},
			{[]string{"plan", "-no-color", "-detailed-exitcode"}, 3},
			{[]string{"destroy", "-auto-approve", "-no-color"}, 6},
		} {
			w.Run(t, 0, row.args...)
			if made := tokensOf(t, site.Server); len(made)-before != row.logins || made[len(made)-1].Expires == nil {
				t.Errorf("%s: after %s there were %d logins, want %d", name, row.args[0], len(made)-before, row.logins)
			}
		}
		keptNowhere(t, w, aPassword, secret, "osu_")
		if name == "approle" {
			// All six uses are gone.
			w.Write(t, "main.tf", acctest.Requirement+"data \"osupgrade_state\" \"acme\" {}\n")
			out := oneLine(w.Run(t, 1, "plan", "-no-color"))
			if !strings.Contains(out, "cannot log in: cannot POST /v1/approle-login: 401 Unauthorized: the login is wrong") || !strings.Contains(out, "takes one use") {
				t.Errorf("the plan says %s", out)
			}
		}
	}
}

// oneLine is what a CLI printed, in one line without its frame.
func oneLine(out string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(out, "│", " ")), " ")
}

// keptNowhere checks that none of the texts is in a file of the workspace, in a member of the
// saved plan too.
func keptNowhere(t *testing.T, w *acctest.Workspace, secrets ...string) {
	t.Helper()
	look := func(name string, content []byte) {
		for _, secret := range secrets {
			if strings.Contains(string(content), secret) {
				t.Errorf("%s has %s", name, secret)
			}
		}
	}
	for _, name := range []string{"terraform.tfstate", "terraform.tfstate.backup", "trace.log", "saved"} {
		content, err := os.ReadFile(filepath.Join(w.Dir, name))
		if err != nil || len(content) == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		look(name, content)
	}
	plan, err := zip.OpenReader(filepath.Join(w.Dir, "saved"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plan.Close() }()
	for _, file := range plan.File {
		member, err := plan.Open(file.Name)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(member)
		if err != nil {
			t.Fatal(err)
		}
		look(file.Name, content)
	}
}

// TestLogin_endsInAnApply: tokens that end in the middle of an apply cost a login each, for
// all of its parallel requests, and the apply goes on.
func TestLogin_endsInAnApply(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	roleID, secretID := api.NewApprole("role", 4)
	api.Latency(5 * time.Millisecond)
	w := acctest.NewWorkspace(t, loggedIn(server, "OSUPGRADE_ROLE_ID="+roleID, "OSUPGRADE_SECRET_ID="+secretID, "OSUPGRADE_VALIDATE_AT_PLAN=false")...)
	w.Write(t, "main.tf", acctest.Requirement+`
resource "osupgrade_calendar" "many" {
  count = 60
  name  = "c${count.index}"
  kind  = "freeze"
}
`)
	endAfter(api, http.MethodPut, 12)
	endAfter(api, http.MethodPut, 25)
	if out := w.Run(t, 0, "apply", "-auto-approve", "-no-color"); !strings.Contains(out, "60 added") {
		t.Error(out)
	}
	if api.Pending() > 0 || api.Logins() < 2 || api.Logins() > 4 {
		t.Errorf("%d faults are left, and there were %d logins", api.Pending(), api.Logins())
	}
	// With none of its uses left, a session that ends fails what is left of the apply, with
	// one refused login.
	roleID, secretID = api.NewApprole("another", 3)
	w.Env = append(w.Env, "OSUPGRADE_ROLE_ID="+roleID, "OSUPGRADE_SECRET_ID="+secretID)
	api.ForgetRequests()
	endAfter(api, http.MethodDelete, 12)
	out := oneLine(w.Run(t, 1, "destroy", "-auto-approve", "-no-color"))
	if !strings.Contains(out, "cannot log in again") || !strings.Contains(out, "what is done is in the state") {
		t.Errorf("it says %s", out)
	}
	if n := api.Count(http.MethodPost, "/v1/approle-login"); n != 4 {
		t.Errorf("there were %d logins, want 4", n)
	}
}

// endAfter withdraws the tokens of all logins when a method is requested after so many others
// of it. Terraform sends ten at once: with twelve, some were answered by then. Up to ten more
// are refused after one end, so it takes 25 until some were answered after it.
func endAfter(api *fakeapi.Server, method string, others int) {
	for range others {
		api.Inject(method, "", fakeapi.First(func() {}))
	}
	api.Inject(method, "", fakeapi.First(api.EndSessions))
}

// TestLogin_atAvassa: a server of Avassa's logs in and refreshes in its own form.
func TestLogin_atAvassa(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.Avassa()
	// It is refreshed in an apply that takes longer. Its life begins when the login arrives, and a
	// password may wait five seconds for its turn.
	api.SetUser("ann", aPassword, 12*time.Second)
	w := acctest.NewWorkspace(t, loggedIn(server, "OSUPGRADE_USERNAME=ann", "OSUPGRADE_PASSWORD="+aPassword)...)
	w.Write(t, "main.tf", acctest.Requirement+`
resource "osupgrade_config" "acme" {
  maintenance_windows = [{ days_of_week = ["`+oneDay+`"], start_time = "01:00", duration = "4h" }]
}
data "osupgrade_state" "acme" {
  depends_on = [osupgrade_config.acme]
}
`)
	refreshed := make(chan struct{})
	var once sync.Once
	api.Inject(http.MethodPost, "/refresh", func(serve http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			serve.ServeHTTP(w, r)
			once.Do(func() { close(refreshed) })
		})
	})
	// The write arrives when the token has been refreshed, with the one of before, and is sent
	// again with that of the refresh: no login is needed.
	api.Inject(http.MethodPut, "/os-upgrade", fakeapi.First(func() {}), fakeapi.First(func() { <-refreshed }))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	if n := api.Count(http.MethodPost, "/refresh"); n == 0 || api.Logins() != 2 || api.Answers(http.StatusUnauthorized) != 1 {
		t.Errorf("%d refreshes, %d logins, %d requests were not authorized", n, api.Logins(), api.Answers(http.StatusUnauthorized))
	}
}

// TestLogin_isRefused: what the plan says of a login that fails, which costs many resources
// one login; of one that fails too often; and of a site that has none.
func TestLogin_isRefused(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, "acme")
	if _, err := site.Logins.WriteUser(t.Context(), principal.User{Tenant: "acme", Name: "ann", Allow: []access.Role{access.Viewer}}, aPassword, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	plan := func(password string) string {
		w := acctest.NewWorkspace(t, loggedIn(site.Server, "OSUPGRADE_USERNAME=ann", "OSUPGRADE_PASSWORD="+password)...)
		w.Write(t, "main.tf", acctest.Requirement+"data \"osupgrade_state\" \"many\" {\n  count = 30\n}\n")
		return oneLine(w.Run(t, 1, "plan", "-no-color"))
	}
	// Ten wrong logins in a minute would have been too many: 30 resources need one. Terraform
	// 1.15 shows the error of one of the 30 alone.
	for range 2 {
		out := plan("wrong-password-44")
		if !strings.Contains(out, "cannot POST /v1/login: 401 Unauthorized: the login is wrong") || strings.Contains(out, "429 Too Many") || !strings.Contains(out, "OSUPGRADE_PASSWORD") || strings.Contains(out, "wrong-password-44") {
			t.Errorf("the plan says %s", out)
		}
	}
	for range 10 {
		resp, err := http.Post(site.Endpoint+"/v1/login", "application/json", strings.NewReader(`{"username":"ann","password":"wrong"}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if out := plan(aPassword); !strings.Contains(out, "429 Too Many Requests: too many logins have failed from 127.0.0.1") || !strings.Contains(out, "Wait until the server hears logins from here again") {
		t.Errorf("the plan says %s", out)
	}
}

// TestLogin_protocol: the schema of the provider refuses attributes of two logins; a value
// that is not known yet is no connection, whatever the environment has; the first request
// logs in, and many at once do so once.
func TestLogin_protocol(t *testing.T) {
	t.Parallel()
	p := protocol{ProviderServer: provider.NewServer("test")()}
	var err error
	if p.schemas, err = p.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
		t.Fatal(err)
	}
	validate := func(attributes map[string]tftypes.Value) (errors []string) {
		resp, err := p.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{Config: object(t, p.schemas.Provider.ValueType(), attributes)})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range resp.Diagnostics {
			errors = append(errors, d.Detail)
		}
		return errors
	}
	ways := [][]string{{"token"}, {"username", "password", "login_tenant"}, {"role_id", "secret_id"}}
	for i, way := range ways {
		whole := map[string]tftypes.Value{}
		for _, name := range way {
			whole[name] = text("x")
		}
		if found := validate(whole); len(found) > 0 {
			t.Errorf("%s are refused: %q", way, found)
		}
		for j, other := range ways {
			for _, a := range way {
				for _, b := range other {
					if found := validate(map[string]tftypes.Value{a: text("x"), b: text("x")}); i != j && len(found) == 0 {
						t.Errorf("%s beside %s is not refused", a, b)
					}
				}
			}
		}
	}
	if found := validate(map[string]tftypes.Value{"password": text("")}); len(found) != 1 || strings.Contains(found[0], "token") {
		t.Errorf("an empty password is answered %q", found)
	}
	if found := validate(map[string]tftypes.Value{"login_tenant": text("A!")}); len(found) != 1 || found[0] != `"A!" is invalid; use the name of a tenant, or * for a user of all tenants` {
		t.Errorf("a wrong tenant of a login is answered %q", found)
	}

	api, server := acctest.Fake(t)
	api.SetUser("ann", aPassword)
	unknown := configuredBy(t, map[string]tftypes.Value{"endpoint": text(server.Endpoint), "tenant": text("acme"), "username": text("ann"), "password": tftypes.NewValue(tftypes.String, tftypes.UnknownValue)})
	says(t, unknown.read(t, "osupgrade_state"), "not known yet: password")
	user := configuredBy(t, map[string]tftypes.Value{"endpoint": text(server.Endpoint), "tenant": text("acme"), "username": text("ann"), "password": text(aPassword)})
	if n := len(api.Requests()); n != 0 {
		t.Errorf("the configuration of the provider made %d requests", n)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if errors := user.read(t, "osupgrade_state"); len(errors) > 0 {
				t.Error(errors)
			}
		})
	}
	all.Wait()
	if n := api.Logins(); n != 1 {
		t.Errorf("there were %d logins", n)
	}
}

// read reads a data source without attributes and returns the errors.
func (p protocol) read(t *testing.T, name string) (errors []string) {
	resp, err := p.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: name, Config: object(t, p.schemas.DataSourceSchemas[name].ValueType(), nil)})
	if err != nil {
		return []string{err.Error()}
	}
	var found told
	found.add(resp.Diagnostics)
	return found.errors
}

// TestLogin_andAToken: a provider that logs in makes an ephemeral token, with which another
// one works.
func TestLogin_andAToken(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.Ephemeral)
	site := realagent.StartSite(t, "acme")
	role, secret := site.Secret(t, "acme", "terraform", 0, access.Admin)
	w := acctest.NewWorkspace(t, loggedIn(site.Server, "OSUPGRADE_ROLE_ID="+role, "OSUPGRADE_SECRET_ID="+secret)...)
	w.Write(t, "main.tf", acctest.Requirement+strings.ReplaceAll(example(t, "ephemeral-resources/osupgrade_token/ephemeral-resource.tf"), "http://127.0.0.1:4646", site.Endpoint))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	for _, token := range tokensOf(t, site.Server) {
		if token.Login == "" {
			t.Errorf("there is a token left: %+v", token)
		}
	}
}

// TestLogin_fromVariables: what to log in with can be in ephemeral variables.
func TestLogin_fromVariables(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.Ephemeral)
	api, server := acctest.Fake(t)
	roleID, secretID := api.NewApprole("role", 5)
	w := acctest.NewWorkspace(t, loggedIn(server, "TF_VAR_osupgrade_secret_id="+secretID, "TF_LOG=TRACE", "TF_LOG_PATH=trace.log")...)
	w.Write(t, "main.tf", acctest.Requirement+fmt.Sprintf(`
variable "osupgrade_secret_id" {
  type      = string
  ephemeral = true
}
provider "osupgrade" {
  role_id   = %q
  secret_id = var.osupgrade_secret_id
}
%s
`, roleID, objects["rollout"][0]))
	w.Run(t, 0, "plan", "-no-color", "-out=saved")
	w.Run(t, 0, "apply", "-no-color", "saved")
	w.Run(t, 0, "apply", "-destroy", "-auto-approve", "-no-color", "-refresh=false")
	keptNowhere(t, w, secretID, fakeapi.SessionToken)
}
