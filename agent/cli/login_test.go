//go:build !worker

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
)

// TestLoginCommand logs in with what the commands of a site's folder have made.
func TestLoginCommand(t *testing.T) {
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
	file := filepath.Join(t.TempDir(), "password")
	made := func(want int, args ...string) string {
		t.Helper()
		code, out := credentials(t, dir, args...)
		if code != want {
			t.Fatalf("%v ends with %d: %s", args, code, out)
		}
		return strings.TrimSpace(out)
	}
	login := func(stdin string, args ...string) (int, string, string) {
		var stdout, stderr strings.Builder
		code := Run(t.Context(), "test", append([]string{"login", "--endpoint", d.Endpoint}, args...), strings.NewReader(stdin), &stdout, &stderr)
		return code, strings.TrimSpace(stdout.String()), stderr.String()
	}
	password := made(exitOK, "user", "--tenant", d.Tenant, "--name", "ann", "--allow", "viewer")
	code, token, stderr := login(password+"\n", "--user", "ann")
	if code != exitOK || !strings.HasPrefix(token, "osu_") {
		t.Fatalf("it ends with %d: %s%s", code, token, stderr)
	}
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, token, stderr := login("", "--user", "ann", "--password-file", file); code != exitOK || !strings.HasPrefix(token, "osu_") {
		t.Errorf("by a file it ends with %d: %s%s", code, token, stderr)
	}
	for name, row := range map[string]struct {
		stdin string
		args  []string
		part  string
	}{
		"a wrong password": {"sesame open", []string{"--user", "ann"}, "the login is wrong"},
		"no password":      {"", []string{"--user", "ann"}, "the password of ann is empty"},
		"nobody":           {password, []string{"--user", "eve"}, "the login is wrong"},
	} {
		if code, _, stderr := login(row.stdin, row.args...); code != exitFailed || !strings.Contains(stderr, row.part) || strings.Contains(stderr, password) {
			t.Errorf("%s ends with %d: %s", name, code, stderr)
		}
	}
	role := made(exitOK, "approle", "--tenant", d.Tenant, "--name", "tf", "--allow", "write")
	secret := made(exitOK, "secret-id", "--tenant", d.Tenant, "--name", "tf")
	list := made(exitOK, "list")
	for _, want := range []string{`(\w{12}) +user +\S+ +ann .* viewer(\n|$)`, `(\w{12}) +approle +\S+ +tf .* write, role-id ` + role, `token +\S+ +ann .* login of the user, viewer until`} {
		if !regexp.MustCompile(want).MatchString(list) {
			t.Errorf("there is no %s in\n%s", want, list)
		}
	}
	if strings.Contains(list, secret) || strings.Contains(list, password) || strings.Contains(list, token) {
		t.Errorf("a secret is in\n%s", list)
	}
	id := regexp.MustCompile(`(\w{12}) +user`).FindStringSubmatch(list)[1]
	if out := made(exitUsage, "rotate", id); !strings.Contains(out, "credentials user gives it another secret") {
		t.Errorf("it says %s", out)
	}
	if out := made(exitOK, "remove", id); !strings.Contains(out, "Removed the user of ann of tenant "+d.Tenant+": its logins have ended") {
		t.Errorf("it says %s", out)
	}
	if out := made(exitFailed, "secret-id", "--tenant", d.Tenant, "--name", "nobody"); !strings.Contains(out, `has no approle "nobody"`) {
		t.Errorf("it says %s", out)
	}
	made(exitUsage, "user", "--tenant", d.Tenant, "--name", "A", "--allow", "viewer")
}

// TestTypedPassword checks that the password of a user can be typed, and that lists for programs
// have the role-id of an approle and no secret.
func TestTypedPassword(t *testing.T) {
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
	const typed = "a password that is typed"
	code, stdout, stderr := callWith(t, typed+"\n", "credentials", "user", "--data", dir, "--tenant", d.Tenant, "--name", "eve", "--allow", "viewer", "--password-file", "-")
	if code != exitOK || stdout+stderr != "" {
		t.Errorf("it ends with %d: %s%s", code, stdout, stderr)
	}
	if code, token, stderr := callWith(t, typed+"\n", "login", "--endpoint", d.Endpoint, "--user", "eve"); code != exitOK || !strings.HasPrefix(token, "osu_") {
		t.Errorf("the login ends with %d: %s%s", code, token, stderr)
	}
	code, role := credentials(t, dir, "approle", "--tenant", d.Tenant, "--name", "tf", "--allow", "write")
	if code != exitOK {
		t.Fatal(role)
	}
	for _, format := range []string{"json", "yaml"} {
		if code, out := credentials(t, dir, "list", "--output", format); code != exitOK || !strings.Contains(out, strings.TrimSpace(role)) || !strings.Contains(out, "eve") || strings.Contains(out, typed) {
			t.Errorf("as %s it ends with %d: %s", format, code, out)
		}
	}
}

// TestPasswordCommand changes a password, as a user who is logged in does.
func TestPasswordCommand(t *testing.T) {
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
	run := func(stdin string, args ...string) (int, string) {
		var out strings.Builder
		code := Run(t.Context(), "test", append(args, "--endpoint", d.Endpoint), strings.NewReader(stdin), &out, &out)
		return code, out.String()
	}
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first, second, third := "a first password", "a second password", "a third password"
	if code, out := credentials(t, dir, "user", "--tenant", d.Tenant, "--name", "ann", "--allow", "viewer", "--password-file", file("first", first+"\n")); code != exitOK {
		t.Fatalf("it ends with %d: %s", code, out)
	}
	login := func(password string) string {
		t.Helper()
		code, out := run(password, "login", "--user", "ann")
		if code != exitOK {
			t.Fatalf("it ends with %d: %s", code, out)
		}
		return out
	}
	other := principal.ID(strings.TrimSpace(login(first)))[:12]
	mine := file("token", login(first))
	for name, row := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"a wrong password":  {"wrong\n" + second + "\n", []string{"--token-file", mine}, "the current password is wrong"},
		"a weak password":   {first + "\nshort\n", []string{"--token-file", mine}, "use 8 characters at least"},
		"the same password": {first + "\n" + first + "\n", []string{"--token-file", mine}, "it is the one that you have"},
		"no password":       {"", []string{"--token-file", mine}, "the current password is empty; type it, or give --current-file"},
		"no new password":   {first + "\n", []string{"--token-file", mine}, "the new password is empty; type it, or give --new-file"},
		"a token":           {first + "\n" + second, []string{"--token-file", file("admin", d.Token)}, "not that of the login of a user"},
	} {
		code, out := run(row.stdin, append([]string{"password"}, row.args...)...)
		if code != exitFailed || !strings.Contains(out, row.want) || strings.Contains(out, first) || strings.Contains(out, second) {
			t.Errorf("%s ends with %d: %s", name, code, out)
		}
	}
	code, out := run(first+"\n"+second, "password", "--token-file", mine)
	if code != exitOK || !regexp.MustCompile(`^The password of ann is changed\.\nIts login `+other+` of \S+ \S+ \S+ CET has ended \(never used\)\.\n$`).MatchString(out) {
		t.Errorf("it ends with %d: %s", code, out)
	}
	code, out = run(second, "password", "--token-file", mine, "--new-file", file("third", third))
	if code != exitOK || out != "The password of ann is changed.\n" {
		t.Errorf("it ends with %d: %s", code, out)
	}
	login(third)
}

// TestFirstAdmin checks that init makes the first admin once.
func TestFirstAdmin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, stdout, stderr := call(t, "init", "--data", dir, "--name", "site.example")
	if code != exitOK || !regexp.MustCompile(`(?m)^Made the first user: admin, password (\w{5}-){2}\w{5}\. The password is shown only once`).MatchString(stdout) {
		t.Fatalf("it ends with %d:\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := call(t, "init", "--data", dir, "--name", "site.example"); code != exitOK || strings.Contains(stdout, "password") {
		t.Errorf("again it ends with %d:\n%s%s", code, stdout, stderr)
	}
	if _, list := credentials(t, dir, "list"); !regexp.MustCompile(`user +\* +admin .* admin\n`).MatchString(list) {
		t.Errorf("it lists\n%s", list)
	}
}
