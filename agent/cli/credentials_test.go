package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
)

// servedFolder is what a site that serves these tenants leaves behind.
func servedFolder(t *testing.T, tenants ...string) string {
	t.Helper()
	dir := t.TempDir()
	streams := filepath.Join(dir, "store", "jetstream", "$G", "streams")
	for _, name := range append([]string{"KV_osu-intent"}, tenants...) {
		if name != "KV_osu-intent" {
			name = log.Subjects{Tenant: name}.Stream()
		}
		if err := os.MkdirAll(filepath.Join(streams, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "credentials"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestWrongCredentials checks that what is good for nothing is not made, nor a
// folder that was mistyped.
func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	dir, served := t.TempDir(), servedFolder(t, "acme")
	file := writeIn(t, dir)
	token := func(more ...string) []string { return append([]string{"credentials", "token", "--name", "x"}, more...) }
	login := func(kind string, more ...string) []string {
		return append([]string{"credentials", kind, "--data", served, "--tenant", "acme", "--allow", "viewer"}, more...)
	}
	t.Cleanup(func() {
		for _, made := range []string{"none", "credentials", "out1", "out2"} {
			if _, err := os.Stat(filepath.Join(dir, made)); err == nil {
				t.Errorf("%s is made", made)
			}
		}
	})
	try(t, map[string]use{
		"key for a strange host":  {[]string{"credentials", "host", "--data", dir, "--tenant", "acme", "--host", "a/b", "--out", dir + "/out1"}, exitUsage, `"a/b"`},
		"key over a file":         {[]string{"credentials", "host", "--data", served, "--tenant", "acme", "--host", "h01", "--out", file("there", "")}, exitFailed, "exists"},
		"token without a name":    {[]string{"credentials", "token", "--data", dir, "--tenant", "acme", "--name", ""}, exitUsage, "use 1 to 63 printable characters"},
		"token of no folder":      {token("--data", dir+"/none", "--tenant", "acme"), exitFailed, "data: no site has run in " + dir + "/none; name the folder"},
		"token of another folder": {token("--data", dir, "--tenant", "acme"), exitFailed, "data: no site has run in " + dir + "; name the folder"},
		"token of no tenant":      {token("--data", servedFolder(t), "--tenant", "acme"), exitFailed, "has no tenants yet; make \"acme\" with osupgrade-agent tenant add"},
		"token of another tenant": {token("--data", served, "--tenant", "acne"), exitFailed, `does not serve "acne"; use acme, or give --new-site`},
		"token of all tenants":    {token("--data", served, "--tenant", "*"), exitOK, "osu_"},
		"token of a strange one":  {token("--data", served, "--tenant", "A"), exitUsage, `use 1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends, or * for all tenants`},
		"key of another tenant":   {[]string{"credentials", "host", "--data", served, "--tenant", "acne", "--host", "h01", "--out", dir + "/out2"}, exitFailed, `does not serve "acne"`},
		"a key that others may read": {
			[]string{"status", "--tenant", "acme", "--endpoint", "https://127.0.0.1:1", "--client-cert-file", file("x.pem", ""), "--client-key-file", openFile(t)}, exitFailed, "client-key-file: ",
		},
		"a certificate that is not there": {
			[]string{"status", "--tenant", "acme", "--endpoint", "http://127.0.0.1:1", "--client-cert-file", dir + "/none.pem"}, exitFailed, "client-cert-file: open",
		},
		"user of a strange name":     {login("user", "--name", "a b"), exitUsage, `name: "a b" is invalid; use 1 to 63 of a-z, 0-9, "-", ".", "_" and "@"`},
		"user with a capital":        {login("user", "--name", "Ann"), exitUsage, `name: "Ann" is invalid`},
		"user with a slash":          {login("user", "--name", "a/b"), exitUsage, `name: "a/b" is invalid`},
		"user without a name":        {login("user", "--name", ""), exitUsage, `name: "" is not a name; give one`},
		"approle of a strange one":   {login("approle", "--name", "a b"), exitUsage, `name: "a b" is invalid; use 1 to 63 of a-z, 0-9, "-", ".", "_" and "@"`},
		"secret-id of a strange one": {[]string{"credentials", "secret-id", "--data", served, "--tenant", "acme", "--name", "a b"}, exitFailed, `no approle "a b"`},
		"token for strange rights":   {[]string{"credentials", "token", "--data", served, "--tenant", "acme", "--name", "x", "--allow", "all"}, exitUsage, `allow: "all" is neither a role nor a policy of the tenant; use admin, operator`},
	})
}

// openFile returns a file that others may read.
func openFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "open.key")
	if err := os.WriteFile(file, nil, 0o644); err != nil { //nolint:gosec // that is what it is for
		t.Fatal(err)
	}
	return file
}

// TestCredentialsOfARealSite checks that the tenants of a folder are found as a
// site leaves it.
func TestCredentialsOfARealSite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Hosts: 0})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	// From elsewhere, an admin of the tenant sees and makes those of that tenant.
	token := writeIn(t, t.TempDir())("token", d.Token)
	remote := []string{"--endpoint", d.Endpoint, "--token-file", token}
	code, stdout, stderr := call(t, append([]string{"credentials", "user", "--tenant", d.Tenant, "--name", "ann", "--allow", "viewer"}, remote...)...)
	if code != exitOK || len(stdout) < 10 {
		t.Errorf("a user is made with exit code %d:\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = call(t, append([]string{"credentials", "list"}, remote...)...)
	if code != exitOK || !strings.Contains(stdout, "  user   "+d.Tenant+"    ann") || !strings.Contains(stdout, "  token  "+d.Tenant+"    dev") {
		t.Errorf("it lists with exit code %d:\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := call(t, append([]string{"credentials", "user", "--tenant", "*", "--name", "bob", "--allow", "viewer"}, remote...)...); code != exitFailed || !strings.Contains(stderr, "is not valid for tenant") {
		t.Errorf("a user of all tenants is made with exit code %d:\n%s%s", code, stdout, stderr)
	}
	for tenant, want := range map[string]int{d.Tenant: exitOK, "*": exitOK, "acme": exitFailed} {
		if code, stdout, stderr := call(t, "credentials", "token", "--data", dir, "--tenant", tenant, "--name", "x"); code != want {
			t.Errorf("%s: exit code %d:\n%s%s", tenant, code, stdout, stderr)
		}
	}
}

// TestManageOnTheMachine manages policies and tenants and reads the audit log in the folder of
// a site, without a token: while the site runs, and afterwards.
func TestManageOnTheMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Hosts: 0})
	if err != nil {
		t.Fatal(err)
	}
	write := writeIn(t, t.TempDir())
	manage := func(name string) {
		t.Helper()
		rules := write(name+".yaml", "policies:\n  "+name+":\n    rest-api: {rules: [{path: /v1/state/**, operations: {read: allow}}]}\n")
		for _, c := range []struct{ command, want string }{
			{"apply --file " + rules + " --tenant " + d.Tenant, "Written, in this order: policy " + name},
			{"get policies --tenant " + d.Tenant, name + "  /v1/state/**: allow read"},
			{"audit --tenant " + d.Tenant, "policy/" + name},
			{"delete policy " + name + " --tenant " + d.Tenant, "Deleted policy " + name + " of tenant"},
			{"tenant list", d.Tenant},
		} {
			code, stdout, stderr := call(t, append(strings.Fields(c.command), "--data", dir)...)
			if code != exitOK || !strings.Contains(stdout, c.want) {
				t.Errorf("%s: exit code %d, without %q:\n%s%s", c.command, code, c.want, stdout, stderr)
			}
		}
	}
	manage("running")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	manage("stopped")
}

// TestWhichSite checks that nobody manages another site than the one that was named: an address
// is never passed over for the folder on this machine, and a flag counts before a variable.
func TestWhichSite(t *testing.T) {
	dir := servedFolder(t, "acme")
	nobody := []string{"credentials", "token", "--tenant", "acme", "--name", "x", "--endpoint"}
	t.Setenv("OSUPGRADE_TOKEN", "")
	for _, data := range []string{"", dir} {
		t.Setenv("OSUPGRADE_DATA", data)
		// The second one is where an agent listens unless it is told otherwise.
		for _, endpoint := range []string{"http://127.0.0.1:1", "http://127.0.0.1:4646"} {
			if code, stdout, stderr := call(t, append(nobody, endpoint)...); code != exitFailed || !strings.Contains(stderr, "there is no token") {
				t.Errorf("with %q the endpoint %s is passed over, exit code %d:\n%s%s", data, endpoint, code, stdout, stderr)
			}
		}
	}
	t.Setenv("OSUPGRADE_DATA", "")
	if code, stdout, stderr := call(t, append(nobody, "http://127.0.0.1:1", "--data", dir)...); code != exitUsage || !strings.Contains(stderr, "use either --data or the others") {
		t.Errorf("a folder and an endpoint: exit code %d:\n%s%s", code, stdout, stderr)
	}
	t.Setenv("OSUPGRADE_ENDPOINT", "http://127.0.0.1:1")
	if code, stdout, stderr := call(t, "credentials", "list"); code != exitFailed || !strings.Contains(stderr, "there is no token") {
		t.Errorf("a variable is passed over, exit code %d:\n%s%s", code, stdout, stderr)
	}
}

// TestHostKey checks that a key is only in its owner's file, and that a try
// that failed does not stand in the way of the next one.
func TestHostKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "key")
	args := []string{"credentials", "host", "--data", dir, "--new-site", "--tenant", "acme", "--out", out, "--host"}
	if code, _, _ := call(t, append(args, "a/b")...); code != exitUsage {
		t.Errorf("a key for a strange host: exit code %d", code)
	}
	code, stdout, stderr := call(t, append(args, "h01")...)
	key, err := os.ReadFile(out)
	if code != exitOK || err != nil || !strings.HasPrefix(string(key), "SU") || strings.Contains(stdout+stderr, string(key)) {
		t.Errorf("exit code %d, %v, a key of %d bytes:\n%s%s", code, err, len(key), stdout, stderr)
	}
	if info, err := os.Stat(out); err != nil || info.Mode() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
}
