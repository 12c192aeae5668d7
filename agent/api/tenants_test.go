package api_test

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

const tenantsPath = "/v1/config/tenants"

// openSite opens a site on a folder, and returns who calls it with a token of all tenants.
func openSite(t *testing.T, dir string, tenants ...string) (*joining, string) {
	t.Helper()
	s, err := site.Open(t.Context(), site.Options{
		Name: "test", Zone: time.UTC, Dir: dir, Tenants: tenants, API: site.Endpoint{Listen: "127.0.0.1:0"}, Holder: "a test", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	j := &joining{t: t, site: s}
	return j, j.client(access.AnyTenant, access.Admin)
}

// want sends a request and checks the status and a part of the answer.
func (j *joining) want(status int, part, token, method, path, body string, headers ...string) (http.Header, string) {
	j.t.Helper()
	got, header, text := j.call(method, path, token, body, headers...)
	if got != status || !strings.Contains(text, part) {
		j.t.Errorf("%s %s: answered %d %s; want %d with %s", method, path, got, text, status, part)
	}
	return header, text
}

func (j *joining) close() {
	j.t.Helper()
	if err := j.site.Close(); err != nil {
		j.t.Fatal(err)
	}
}

// host connects a host by its key. The channel is closed once the site cuts it off.
func (j *joining) host(tenant, name string, seed []byte) (*nats.Conn, <-chan struct{}) {
	j.t.Helper()
	key, err := nkeys.FromSeed(seed)
	if err != nil {
		j.t.Fatal(err)
	}
	cut := make(chan struct{})
	nc, err := j.site.Server().ConnectHost(tenant+"/"+name, key, nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(cut) }))
	if err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(nc.Close)
	return nc, cut
}

// TestTenantsOfTheAPI makes a tenant while the site runs, uses it, restarts the site, removes
// the tenant in spite of its run and its host, and takes it up again: nothing of it is lost,
// and nobody is let in by what let it in before.
func TestTenantsOfTheAPI(t *testing.T) { //nolint:funlen // one life of a tenant
	t.Parallel()
	dir := t.TempDir()
	j, all := openSite(t, dir, "acme")
	const beta, betaConfig, betaState = tenantsPath + "/beta", tenantsPath + "/beta/os-upgrade", "/v1/state/tenants/beta/os-upgrade"
	j.want(404, `tenant \"beta\" does not exist`, all, "GET", betaState, "")
	j.want(204, "", all, "POST", tenantsPath+"?validate=true", `{"name":"beta"}`)
	j.want(404, "there is no tenant beta", all, "GET", beta, "")
	made, _ := j.want(201, "", all, "POST", tenantsPath, `{"name":"beta","descriptive-name":"Beta Ltd"}`)
	if made.Get("Location") != beta || made.Get("ETag") == "" {
		t.Errorf("it is made at %s as %s", made.Get("Location"), made.Get("ETag"))
	}
	j.want(409, "there is the tenant beta already", all, "POST", tenantsPath, `{"name":"beta"}`)
	j.want(200, `[{"name":"acme"},{"name":"beta","descriptive-name":"Beta Ltd"}]`, all, "GET", tenantsPath, "")
	j.want(200, `"source":"site","status":"active"`, all, "GET", "/v1/state/tenants/acme", "")
	j.want(200, `"source":"api","status":"active","creation-time":"`, all, "GET", "/v1/state/tenants/beta", "")
	j.want(200, `{"status":"ok"}`, "", "GET", "/readyz", "")
	j.want(200, "idle", all, "GET", betaState, "")
	j.want(201, "", all, "PUT", betaConfig, `{"worker-applications":[{"name":"appliance"}]}`)
	j.want(201, "", all, "PUT", betaConfig+"/rollout", `{"absent":"count"}`)
	j.want(200, `tenant="beta"`, all, "GET", "/metrics", "")
	j.want(412, "has ETag", all, "PUT", beta, `{}`, "If-Match", `"0-1"`)
	j.want(204, "", all, "PATCH", beta, `{"descriptive-name":"Beta Inc"}`, "If-Match", made.Get("ETag"))
	j.want(200, `{"name":"beta","descriptive-name":"Beta Inc"}`, all, "GET", beta, "")

	const password, users = "correct horse", "/v1/config/tenants/beta/strongbox/authentication/userpass"
	j.want(201, "", all, "PUT", users+"/ann", `{"password":"`+password+`","token-policies":["viewer"]}`)
	ann, err := j.site.Logins.User(t.Context(), "", "beta", "ann", password, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	token := j.client("beta", access.Admin)
	j.want(403, "belongs to the whole site", token, "GET", beta, "")
	j.want(403, "belongs to the whole site", token, "DELETE", beta+"?force=true", "")
	j.want(403, "belongs to the whole site", token, "POST", tenantsPath, `{"name":"gamma"}`)
	j.want(201, "", token, "POST", "/v1/config/policy/policies", `{"name":"none","rest-api":{"rules":[]}}`)
	j.want(201, "", token, "POST", "/v1/state/os-upgrade/join-tokens", `{"host":"h01","application":"appliance"}`)
	seed, err := j.site.Hosts.Add(natsd.Identity{Tenant: "beta", Host: "h01"})
	if err != nil {
		t.Fatal(err)
	}
	j.close()

	j, _ = openSite(t, dir, "acme")
	j.want(200, `"appliance"`, all, "GET", betaConfig, "")
	j.want(200, "idle", ann.Text, "GET", betaState, "")
	host, cut := j.host("beta", "h01", seed)
	alive := message.Alive{Application: "appliance", Protocol: format.Protocol}.Encode()
	// A controller that has just started waits for its hosts before it opens a run.
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(100 * time.Millisecond) {
		if err := host.Publish(log.Subjects{Tenant: "beta"}.Alive("h01"), alive); err != nil {
			t.Fatal(err)
		}
		if _, text := j.want(200, "", all, "GET", betaState+"/hosts", ""); !strings.Contains(text, `"online"`) {
			continue
		}
		j.want(412, "the tenant has 1 hosts (h01); delete them, or add force=true", all, "DELETE", beta, "")
		if status, _, text := j.call("POST", betaState+"/start", all, `{"override-window":true,"reason":"a test"}`); status != 503 {
			if status != 200 {
				t.Errorf("the start is answered %d %s", status, text)
			}
			break
		}
	}
	j.want(412, "a run of the tenant is in progress; wait until it ends, or add force=true", all, "DELETE", beta, "")
	j.want(412, "a run of the tenant is in progress", all, "DELETE", beta+"?validate=true", "")
	begun := time.Now()
	j.want(204, "", all, "DELETE", beta+"?force=true", "")
	select {
	case <-cut:
		t.Logf("the host is cut off %s after the removal began", time.Since(begun))
	case <-time.After(10 * time.Second):
		t.Error("the host is still connected")
	}
	removed := func() {
		t.Helper()
		j.want(404, `tenant \"beta\" does not exist`, all, "GET", betaState, "")
		j.want(404, "there is no tenant beta", all, "GET", beta, "")
		j.want(404, "there is no tenant beta", all, "DELETE", beta, "")
		j.want(200, `"status":"removed","creation-time":"`, all, "GET", "/v1/state/tenants/beta", "")
		j.want(200, `[{"name":"acme"}]`, all, "GET", tenantsPath, "")
		j.want(401, "the token is unknown", ann.Text, "GET", betaState, "")
		j.want(401, "the token is unknown", token, "GET", betaState, "")
		j.want(200, `{"status":"ok"}`, "", "GET", "/readyz", "")
		if _, text := j.want(200, `tenant="acme"`, all, "GET", "/metrics", ""); strings.Contains(text, `tenant="beta"`) {
			t.Error("there are metrics of the removed tenant")
		}
		for _, folder := range []string{"hosts", "tokens", "users", "approles", "policies", "join-tokens"} {
			files, err := filepath.Glob(filepath.Join(dir, "credentials", folder, "*.json"))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range files {
				if body, err := os.ReadFile(name); err != nil || strings.Contains(string(body), `"beta"`) {
					t.Errorf("%s lets somebody in: %s, %v", name, body, err)
				}
			}
		}
		if served, err := site.Served(dir); err != nil || !slices.Equal(served, []string{"acme"}) {
			t.Errorf("the folder serves %v, %v", served, err)
		}
		if logs, err := site.Tenants(dir); err != nil || !slices.Contains(logs, "beta") {
			t.Errorf("the log is not kept: %v, %v", logs, err)
		}
	}
	removed()
	j.close()
	j, _ = openSite(t, dir, "acme")
	removed()
	j.want(409, "the site keeps the log and the configuration of a tenant of this name", all, "POST", tenantsPath, `{"name":"beta"}`)
	j.want(409, "add restore=true to take them up again", all, "PUT", beta, `{}`)
	j.want(409, "the site keeps nothing of a tenant of this name", all, "PUT", tenantsPath+"/gamma?restore=true", `{}`)
	j.want(201, "", all, "POST", tenantsPath+"?restore=true", `{"name":"beta"}`)
	j.want(200, `"appliance"`, all, "GET", betaConfig, "")
	j.want(200, `"result":"aborted"`, all, "GET", betaState+"/runs", "")
	j.want(200, `the tenant is removed`, all, "GET", betaState+"/runs", "")
	j.want(401, "the token is unknown", ann.Text, "GET", betaState, "")
	j.close()

	// The site's configuration wins.
	j, _ = openSite(t, dir, "acme", "beta")
	j.want(200, `"source":"site"`, all, "GET", "/v1/state/tenants/beta", "")
	j.want(409, "the tenant is in the site's configuration, which wins", all, "DELETE", beta+"?force=true", "")
	j.want(409, "the tenant is in the site's configuration, which wins", all, "DELETE", tenantsPath+"/acme", "")
	j.want(204, "", all, "PUT", tenantsPath+"/acme", `{"descriptive-name":"Acme Ltd"}`)
	j.want(200, `{"name":"acme","descriptive-name":"Acme Ltd"}`, all, "GET", tenantsPath+"/acme", "")
	j.close()
	j, _ = openSite(t, dir, "beta")
	j.want(200, "idle", all, "GET", "/v1/state/tenants/acme/os-upgrade", "") // It is one of the API now.
	j.close()
}

// TestWrongTenants checks what is answered to a tenant that is wrong, and that no role but
// admin of all tenants makes one.
func TestWrongTenants(t *testing.T) {
	t.Parallel()
	j, all := openSite(t, t.TempDir(), "acme")
	defer j.close()
	for name, row := range map[string]struct{ method, path, body, part string }{
		"no name":                 {"POST", tenantsPath, `{}`, "tenant: "},
		"a name that is none":     {"POST", tenantsPath, `{"name":"A"}`, `name: \"A\" is not the name of a tenant`},
		"a path that is none":     {"PUT", tenantsPath + "/A", `{}`, `is not the name of a tenant`},
		"all tenants":             {"PUT", tenantsPath + "/*", `{}`, `is not the name of a tenant`},
		"another name":            {"PUT", tenantsPath + "/beta", `{"name":"gamma"}`, `is not the name in the path`},
		"an unknown member":       {"PUT", tenantsPath + "/beta", `{"kind":"system"}`, `kind`},
		"a name on several lines": {"PUT", tenantsPath + "/beta", `{"descriptive-name":"a\nb"}`, `descriptive-name`},
	} {
		if status, _, text := j.call(row.method, row.path, all, row.body); status != 400 || !strings.Contains(text, row.part) {
			t.Errorf("%s: answered %d %s; want %s", name, status, text, row.part)
		}
	}
	for _, role := range access.Roles() {
		for _, tenant := range []string{"acme", access.AnyTenant} {
			if role == access.Admin && tenant == access.AnyTenant {
				continue
			}
			mine := j.client(tenant, role)
			for _, row := range [][3]string{{"POST", tenantsPath, `{"name":"beta"}`}, {"PUT", tenantsPath + "/beta", `{}`}, {"PATCH", tenantsPath + "/acme", `{}`}, {"DELETE", tenantsPath + "/acme"}} {
				if status, _, text := j.call(row[0], row[1], mine, row[2]); status != 403 {
					t.Errorf("%s of %s: %s %s is answered %d %s", role, tenant, row[0], row[1], status, text)
				}
			}
		}
	}
	j.want(200, `[{"name":"acme"}]`, j.client(access.AnyTenant, access.Viewer), "GET", tenantsPath, "")
}
