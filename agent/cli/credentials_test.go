package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/dev"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
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
	return dir
}

// TestWrongCredentials checks that what is good for nothing is not made, nor a
// folder that was mistyped.
func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	dir, served := t.TempDir(), servedFolder(t, "acme")
	file := writeIn(t, dir)
	token := func(more ...string) []string { return append([]string{"credentials", "token", "--name", "x"}, more...) }
	t.Cleanup(func() {
		for _, made := range []string{"none", "credentials", "out1", "out2"} {
			if _, err := os.Stat(filepath.Join(dir, made)); err == nil {
				t.Errorf("%s is made", made)
			}
		}
	})
	try(t, map[string]use{
		"key for a strange host":   {[]string{"credentials", "host", "--data", dir, "--tenant", "acme", "--host", "a/b", "--out", dir + "/out1"}, exitUsage, `"a/b"`},
		"key over a file":          {[]string{"credentials", "host", "--data", served, "--tenant", "acme", "--host", "h01", "--out", file("there", "")}, exitFailed, "exists"},
		"token without a name":     {[]string{"credentials", "token", "--data", dir, "--tenant", "acme", "--name", ""}, exitUsage, "use 1 to 63 printable characters"},
		"token of no folder":       {token("--data", dir+"/none", "--tenant", "acme"), exitFailed, "data: no site has run in " + dir + "/none; name the folder"},
		"token of another folder":  {token("--data", dir, "--tenant", "acme"), exitFailed, "data: no site has run in " + dir + "; name the folder"},
		"token of no tenant":       {token("--data", servedFolder(t), "--tenant", "acme"), exitFailed, "has no tenants yet; make \"acme\" with osupgrade-agent tenant add"},
		"token of another tenant":  {token("--data", served, "--tenant", "acne"), exitFailed, `does not serve "acne"; use acme, or give --new-site`},
		"token of all tenants":     {token("--data", served, "--tenant", "*"), exitOK, "osu_"},
		"token of a strange one":   {token("--data", served, "--tenant", "A"), exitUsage, `use 1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends, or * for all tenants`},
		"key of another tenant":    {[]string{"credentials", "host", "--data", served, "--tenant", "acne", "--host", "h01", "--out", dir + "/out2"}, exitFailed, `does not serve "acne"`},
		"token for strange rights": {[]string{"credentials", "token", "--data", served, "--tenant", "acme", "--name", "x", "--allow", "all"}, exitUsage, `allow: "all" is neither a role nor a policy of the tenant; use admin, operator`},
	})
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
	for tenant, want := range map[string]int{d.Tenant: exitOK, "*": exitOK, "acme": exitFailed} {
		if code, stdout, stderr := call(t, "credentials", "token", "--data", dir, "--tenant", tenant, "--name", "x"); code != want {
			t.Errorf("%s: exit code %d:\n%s%s", tenant, code, stdout, stderr)
		}
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
