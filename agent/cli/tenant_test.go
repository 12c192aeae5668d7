//go:build !worker

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
)

// typed is a command, the exit code that it ends with and what it prints.
type typed struct {
	command, stdin string
	code           int
	want           string
}

// inTurn runs commands in their order.
func inTurn(t *testing.T, endpoint, token string, commands []typed) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range commands {
		var out, errs strings.Builder
		arguments := append(strings.Fields(s.command), "--endpoint", endpoint, "--token-file", file)
		code := Run(t.Context(), "osupgrade-agent", arguments, strings.NewReader(s.stdin), &out, &errs)
		if got := out.String() + errs.String(); code != s.code || !strings.Contains(got, s.want) {
			t.Errorf("%s: exit code %d:\n%s\nwant %d and\n%s", s.command, code, got, s.code, s.want)
		}
	}
}

// TestTenants makes, lists, removes and restores a tenant of a real site.
func TestTenants(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	root, err := d.Tokens.Add(principal.Token{Name: "root", Tenant: access.AnyTenant, Allow: []access.Role{access.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	inTurn(t, d.Endpoint, root, []typed{
		{"tenant add beta --description Beta", "", exitOK, "Tenant beta is made and served. Nobody is let in yet; on the site: osupgrade-agent credentials user --tenant beta --name NAME --allow admin\n"},
		{"tenant add beta", "", exitFailed, "there is the tenant beta already"},
		{"tenant add Beta", "", exitUsage, `"Beta" is not the name of a tenant`},
		{"tenant list", "", exitOK, "NAME  STATUS  MADE BY                   DESCRIPTION\nacme  active  the site's configuration  -\nbeta  active  the API                   Beta\n"},
		{"tenant list --output json", "", exitOK, `"descriptive-name": "Beta"`},
		{"status --tenant beta", "", exitOK, "idle"},
		{"tenant remove acme", "", exitFailed, "the tenant is in the site's configuration, which wins"},
		{"tenant remove beta", "", exitOK, "Tenant beta is removed. Its log is kept; to take it up again: osupgrade-agent tenant add beta --restore\n"},
		{"tenant remove beta", "", exitFailed, "there is no tenant beta"},
		{"tenant remove ..", "", exitFailed, `tenant ".." is not a name`},
		{"tenant list", "", exitOK, "beta  removed  the API                   Beta\n"},
		{"tenant add beta", "", exitFailed, "add restore=true to take them up again"},
		{"tenant add beta --restore --output json", "", exitOK, `"added": "beta"`},
		{"tenant remove beta --force --output json", "", exitOK, `"removed": "beta"`},
	})
	inTurn(t, d.Endpoint, d.Token, []typed{
		{"tenant list", "", exitFailed, "this belongs to the whole site; use a token of all tenants"},
	})
}

// TestUnknownTenant checks that a command which reads says so if there is no such tenant, and
// names those there are or how to see them.
func TestUnknownTenant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	root, err := d.Tokens.Add(principal.Token{Name: "root", Tenant: access.AnyTenant, Allow: []access.Role{access.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	reading := []string{
		"status", "status --output json", "windows", "hosts", "hosts h01", "hosts h01 --offer", "runs", "runs 1", "watch", "watch 1", "audit", "history config",
		"get", "webhook list", "webhook test chat", "webhook dead chat", "get policies", "get policy/night", "get users", "delete policy/night", "start --dry-run",
	}
	byRoot, byOne := writeIn(t, t.TempDir())("root", root), writeIn(t, t.TempDir())("one", d.Token)
	check := func(want, command string, more ...string) {
		t.Helper()
		code, stdout, stderr := call(t, append(strings.Fields(command), append(more, "--tenant", "acne")...)...)
		if code != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, without %q:\n%s%s", command, code, want, stdout, stderr)
		}
	}
	for _, command := range reading {
		check(`tenant "acne" does not exist; osupgrade-agent tenant list shows those there are`, command, "--endpoint", d.Endpoint, "--token-file", byRoot)
		check(`token "dev" is not valid for tenant "acne"; it is valid for "acme"`, command, "--endpoint", d.Endpoint, "--token-file", byOne)
	}
	for _, command := range []string{"audit", "audit --output json", "get policies", "get policies --output json", "get users", "get approles -o yaml"} {
		check(`tenant: the site does not serve "acne"; use acme`, command, "--data", dir)
	}
	check(`tenant "acne" does not exist; osupgrade-agent tenant list shows those there are`, "history config", "--data", dir)
}
