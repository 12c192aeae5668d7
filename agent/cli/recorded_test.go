//go:build !worker

package cli

import (
	"encoding/json"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// recordsOf reads the audit log of a tenant in the folder of a site.
func recordsOf(t *testing.T, dir, tenant string) (lines []string, text string) {
	t.Helper()
	logs := site.OpenAudit(dir)
	defer func() { _ = logs.Close() }()
	var all uint64
	read, err := logs.Read(tenant, v1.AuditFilter{After: &all})
	if err != nil || len(read.Damage) > 0 {
		t.Fatalf("the audit log is %+v: %v", read, err)
	}
	for _, r := range read.Records {
		if r.By != me(t) || r.As != v1.AuditMachine || r.From != v1.AuditLocal {
			t.Errorf("a record is %+v", r)
		}
		lines = append(lines, r.Action+" "+r.Object+" "+r.Result+" | "+r.Detail)
	}
	body, err := json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	return lines, string(body)
}

// me is the user who runs the test.
func me(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

// TestRecordedUser checks that a record has the user who ran a command, and not whom a variable
// names.
func TestRecordedUser(t *testing.T) {
	t.Setenv("SUDO_USER", "eve")
	dir := t.TempDir()
	if code, _, stderr := call(t, "init", "--name", "site.example", "--data", dir); code != exitOK {
		t.Fatal(stderr)
	}
	if lines, _ := recordsOf(t, dir, audit.AllTenants); len(lines) == 0 {
		t.Error("there is no record")
	}
}

// TestRecorded checks that each command that works on the folder of a site, past the API, is
// in the audit log, and none of the secrets that it prints.
func TestRecorded(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), t.TempDir()
	var secrets []string
	run := func(code int, args ...string) string {
		t.Helper()
		got, stdout, stderr := call(t, append(args, "--data", dir)...)
		if got != code {
			t.Errorf("%q: exit code %d:\n%s%s", args, got, stdout, stderr)
		}
		text := strings.TrimSpace(stdout)
		if words := strings.Fields(text); len(words) == 1 {
			secrets = append(secrets, text)
		}
		return text
	}
	credentials := func(args ...string) string {
		t.Helper()
		return run(exitOK, append([]string{"credentials"}, args...)...)
	}
	ids := func() map[string]string { // By the kind of the last of each.
		all := map[string]string{}
		for line := range strings.Lines(credentials("list")) {
			words := strings.Fields(line)
			all[words[1]] = words[0]
		}
		return all
	}
	run(exitOK, "init", "--name", "site.example")
	credentials("token", "--new-site", "--tenant", "acme", "--name", "ci", "--allow", "read")
	credentials("rotate", ids()["token"])
	credentials("remove", ids()["token"])
	credentials("user", "--new-site", "--tenant", "acme", "--name", "ann", "--allow", "operator")
	role := credentials("approle", "--new-site", "--tenant", "acme", "--name", "terraform", "--allow", "read,write")
	credentials("secret-id", "--tenant", "acme", "--name", "terraform")
	credentials("host", "--new-site", "--tenant", "acme", "--host", "h01", "--out", filepath.Join(out, "h01.key"))
	credentials("remove", ids()["key"])
	credentials("join-token", "create", "--new-site", "--tenant", "acme", "--host", "h02", "--application", "appliance")
	joins := strings.Fields(credentials("join-token", "list"))
	credentials("join-token", "remove", joins[len(joins)-10])
	run(exitUsage, "credentials", "user", "--new-site", "--tenant", "ACME", "--name", "ann", "--allow", "operator")

	acme, text := recordsOf(t, dir, "acme")
	ofAll, more := recordsOf(t, dir, audit.AllTenants)
	want := []string{
		"create token/ done | name ci, allows read", "rotate token/ done | in place of token/", "delete token/ done | name ci",
		"write user/ann done | allows operator", "write approle/terraform done | allows read write", "create secret-id/ done | of approle terraform",
		"add-key host/h01 done | ", "delete-key host/h01 done | key U", "create join-token/ done | for host h02, application appliance, until ", "delete join-token/ done | ",
	}
	check := func(got, want []string) {
		t.Helper()
		for i := range max(len(got), len(want)) {
			var begin, end string
			if i < len(want) {
				begin, end, _ = strings.Cut(want[i], " done")
			}
			if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], begin) || !strings.Contains(got[i], end) {
				t.Fatalf("the records are\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
	check(acme, want)
	check(ofAll, []string{"init site done | a certificate for site.example", "write user/admin done | allows admin"})
	for _, secret := range secrets {
		if secret != role && strings.Contains(text+more, secret) {
			t.Errorf("a record has the secret %s", secret)
		}
	}
	if len(secrets) != 6 {
		t.Errorf("the commands print %d secrets: %q", len(secrets), secrets)
	}
}

// TestNotRecorded checks that nothing is done that cannot be recorded.
func TestNotRecorded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "audit"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := call(t, "credentials", "token", "--data", dir, "--new-site", "--tenant", "acme", "--name", "ci")
	if code != exitFailed || stdout != "" || !strings.Contains(stderr, "nothing was changed: cannot open the audit log") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	if all, err := os.ReadDir(filepath.Join(dir, "credentials", "tokens")); err != nil || len(all) > 0 {
		t.Errorf("a token was made: %v, %v", all, err)
	}
}
