package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestNoTenants starts a site whose configuration names no tenant, makes its first as it says,
// and starts it again.
func TestNoTenants(t *testing.T) {
	t.Parallel()
	f := newProgram(t)
	data := f.path("site")
	start := func(want string) {
		t.Helper()
		var line string
		f.site, line = f.launch("serve", "serve", "--data", data, "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0")
		found := addresses.FindStringSubmatch(line)
		if found == nil || !strings.Contains(line, want) {
			t.Fatalf("serve says %q, and should say %q", line, want)
		}
		f.api = found[1]
		f.ready(http.StatusOK, "ok")
	}
	start("no tenants yet: create the first with osupgrade-agent tenant add NAME.")
	if out, code := f.try("", "credentials", "token", "--data", data, "--tenant", "acme", "--name", "ann"); code != 1 || !strings.Contains(out, `has no tenants yet; make "acme" with osupgrade-agent tenant add`) {
		t.Errorf("a token of a tenant that is not there ends with %d: %s", code, out)
	}
	root := f.path("root")
	if err := os.WriteFile(root, []byte(f.command("credentials", "token", "--data", data, "--tenant", "*", "--name", "root", "--allow", "admin")), 0o600); err != nil {
		t.Fatal(err)
	}
	f.command("tenant", "add", "acme", "--endpoint", "http://"+f.api, "--token-file", root)
	status := func() {
		t.Helper()
		if out, code := f.try("", "status", "--endpoint", "http://"+f.api, "--tenant", "acme", "--token-file", root); code != 0 {
			t.Errorf("status ends with %d: %s", code, out)
		}
	}
	status()
	f.command("credentials", "token", "--data", data, "--tenant", "acme", "--name", "ann")
	f.site.kill()
	start(", tenants acme.")
	status()
	f.command("backup", "--data", data, "--out", f.path("site.tar"))
}
