//go:build !worker

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
)

// accessText declares who may do what, and who is notified.
const accessText = `policies:
    night:
        rest-api:
            rules:
                - path: "/v1/state/**"
                  description: by night
                  operations:
                    all: reject
                    read: allow
users:
    ann:
        token-policies:
            - night
            - viewer
        token-ttl: "8h"
approles:
    deploy:
        token-policies:
            - write
        secret-id-ttl: "10m"
webhooks:
    chat:
        url: "https://hooks.example/osupgrade"
        news:
            - "run.finished"
`

// kindsOf starts a site and returns its address, and the folder of a file that declares
// accessText with a password and a secret.
func kindsOf(t *testing.T) (d *dev.Dev, dir string) {
	t.Helper()
	d, err := dev.Start(t.Context(), dev.Options{Dir: t.TempDir(), Tenant: "acme", Hosts: 0})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	dir = t.TempDir()
	write := writeIn(t, dir)
	write("ann.password", password+"\n")
	write("chat.secret", hookSecret)
	write("acme.yaml", strings.NewReplacer("    ann:\n", "    ann:\n        password-file: ann.password\n", "    chat:\n", "    chat:\n        secret-file: chat.secret\n").Replace(accessText))
	return d, dir
}

// The secrets of kindsOf.
const (
	password   = "a password of her own"
	hookSecret = "whsec_QUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJD"
)

// TestKinds declares, lists, prints, edits and deletes who may do what and who is notified, and
// checks that no secret is ever shown.
func TestKinds(t *testing.T) {
	t.Parallel()
	d, dir := kindsOf(t)
	file := filepath.Join(dir, "acme.yaml")
	objects := "policy/night user/ann approle/deploy webhook/chat"
	commands := []typed{
		{"get policies", "", exitOK, "Tenant acme has no policies.\n"},
		{"get users -o json", "", exitOK, "{}\n"},
		{"get policy night", "", exitFailed, "tenant acme has no policy night\n"},
		{"apply --dry-run -f " + file, "", exitOK, "It would be written in this order: policy night, approle deploy, user ann, webhook chat.\n"},
		{"apply -f " + file, "", exitOK, "Written, in this order: policy night, approle deploy, user ann, webhook chat.\n"},
		{"apply -f " + file, "", exitOK, "Nothing to write: the site has it all.\n"},
		{"get policies", "", exitOK, "NAME   RULE\nnight  /v1/state/**: allow read reject all (by night)\n"},
		{"get users", "", exitOK, "NAME  ALLOWS        TOKEN VALID\nann   night,viewer  8h\n"},
		{"get approles", "", exitOK, "NAME    ALLOWS  SECRET-ID VALID\ndeploy  write   10m\n"},
		{"get webhooks", "", exitOK, "NAME  NEWS          URL\nchat  run.finished  https://hooks.example/osupgrade\n"},
		{"get " + objects, "", exitOK, accessText},
		{"get policies users approles webhooks", "", exitOK, accessText},
		{"get policies -o yaml", "", exitOK, strings.Split(accessText, "users:")[0]},
		{"get users -o json", "", exitOK, `"token-ttl": "8h"`},
		{"get policy night", "", exitOK, strings.Split(accessText, "users:")[0]},
		{"get user bob", "", exitFailed, "tenant acme has no user bob; it has ann\n"},
		{"apply -f -", "users: {ann: {token-policies: [viewer]}}", exitOK, "user ann: changed\n"},
		{"apply -f -", "policies: {night: null}\nusers: {ann: {token-policies: [viewer, operator]}}", exitOK, "Written, in this order: user ann, policy night.\n"},
		{"apply -f -", "policies: {night: null}", exitOK, "policy night: unchanged\nNothing to write"},
		{"delete user/ann user/bob", "", exitFailed, "nothing was deleted: tenant acme has no user bob; it has ann\n"},
		{"delete user/ann webhook/chat", "", exitOK, "Deleted user ann of tenant acme.\nDeleted webhook chat of tenant acme.\n"},
		{"delete approle deploy -o json", "", exitOK, `"approle deploy"`},
		{"get users", "", exitOK, "Tenant acme has no users.\n"},
	}
	for i := range commands {
		commands[i].command += " --tenant acme"
	}
	inTurn(t, d.Endpoint, d.Token, commands)
}

// TestPolicyInUse checks that a policy that somebody has is deleted only by force.
func TestPolicyInUse(t *testing.T) {
	t.Parallel()
	d, dir := kindsOf(t)
	inTurn(t, d.Endpoint, d.Token, []typed{
		{"apply --tenant acme -f " + filepath.Join(dir, "acme.yaml"), "", exitOK, "Written"},
		{"delete policy night --tenant acme", "", exitFailed, "cannot delete policy night: "},
		{"delete policy night --force --tenant acme", "", exitOK, "Deleted policy night of tenant acme.\n"},
	})
}

// TestDeclaredUserLogsIn checks that the password of the file is that of the user who is
// created, and that a change of the user neither changes it nor shows it.
func TestDeclaredUserLogsIn(t *testing.T) {
	t.Parallel()
	d, dir := kindsOf(t)
	file := filepath.Join(dir, "acme.yaml")
	inTurn(t, d.Endpoint, d.Token, []typed{{"apply --tenant acme -f " + file, "", exitOK, "Written"}})
	login := func() {
		t.Helper()
		if code, stdout, stderr := callWith(t, password+"\n", "login", "--endpoint", d.Endpoint, "--user", "ann"); code != exitOK || !strings.HasPrefix(stdout, "osu_") {
			t.Errorf("the login ends with %d: %s%s", code, stdout, stderr)
		}
	}
	login()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := writeIn(t, dir)
	write("ann.password", "another password\n")
	inTurn(t, d.Endpoint, d.Token, []typed{
		{"apply --tenant acme -f " + write("changed.yaml", strings.Replace(string(text), "8h", "9h", 1)), "", exitOK, "Written, in this order: user ann.\n"},
	})
	login()
}

// TestKindsMisuse checks what is told of objects that cannot be declared or named.
func TestKindsMisuse(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	dir := t.TempDir()
	write := writeIn(t, dir)
	write("secret", "x")
	write("empty", "\n")
	if err := os.Chmod(write("open", "x"), 0o644); err != nil { //nolint:gosec // that is what is refused
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"users: {ann: {token-policies: [viewer], password: osu_secret}}": "users.ann.password: a secret does not belong in this text; write it to a file that only you may read, and name the file with password-file",
		"webhooks: {chat: {url: 'https://x', secret: whsec_x}}":          "webhooks.chat.secret: a secret does not belong in this text",
		"users: {ann: {token-policies: [viewer], password-file: open}}":  "is open to other users",
		"users: {ann: {token-policies: [viewer], password-file: none}}":  "no such file",
		"users: {ann: {token-policies: [viewer], password-file: empty}}": `users.ann.password-file: "empty" is an empty file`,
		"webhooks: {chat: {url: 'https://x', secret-file: secret}}":      "webhooks.chat.secret: ",
		"users: {ann: {}}":                                                                     "users.ann.token-policies: without a role nothing is allowed",
		"users: {-a: {token-policies: [viewer]}}":                                              `users.-a: "-a" is not the name of a user; use 1 to 63 of`,
		"approles: {A: {token-policies: [viewer]}}":                                            `approles.A: "A" is not the name of an approle`,
		"policies: {night: {name: day, rest-api: {rules: []}}}":                                `policies.night.name: "day" is not the name of the object; leave it out`,
		"policies: {night: {rest-api: {rules: [{path: /v1/**, operations: {write: allow}}]}}}": `"write" is no operation`,
		"users: {a@c: {token-policies: [viewer], x: 1}}":                                       "x: unknown key",
	} {
		code, _, stderr := call(t, as(t, s.URL, s.Token, "acme", "apply", "-f", write("a.yaml", text))...)
		if code != exitUsage || !strings.Contains(stderr, want) || strings.Contains(stderr, "osu_secret") || strings.Contains(stderr, "whsec_x") {
			t.Errorf("%s: exit code %d, without %q: %s", text, code, want, stderr)
		}
	}
	for line, want := range map[string]string{
		"get policy":                "which policy? Name it, such as policy/NAME, or use policies for all",
		"get config users/":         `"users/" is not an object`,
		"get config/x":              `"config/x" is not an object`,
		"get environments basel":    "environments means all of them; to name one: environment/basel",
		"delete environments/basel": "environments means all of them; to name one: environment/basel",
		"get environments basel x":  "environments means all of them; to name one: environment/basel",
		"delete users":              "name each object to delete, such as user/NAME; users means all of them",
		"delete user":               "which user?",
		"get -o xml":                `"xml" is not a format; use text or json or yaml`,
		"get users -o":              "the format is missing",
		"status -o yaml":            `"yaml" is not a format; use text or json`,
		"delete":                    `expected "<what> ..."`,
	} {
		code, _, stderr := call(t, as(t, s.URL, s.Token, "acme", strings.Fields(line)...)...)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, without %q: %s", line, code, want, stderr)
		}
	}
}

// TestDeleteIsConditional checks that an object that somebody changes meanwhile stays.
func TestDeleteIsConditional(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	args := func(line string) []string { return as(t, s.URL, s.Token, "acme", strings.Fields(line)...) }
	for _, text := range []string{"rollout: {max-failures: 2}", "rollout: {max-failures: 3}"} {
		if text == "rollout: {max-failures: 3}" {
			s.Inject("DELETE", "/rollout", fakeapi.First(func() {
				if code, _, stderr := callWith(t, text, args("apply -f -")...); code != exitOK {
					t.Error(stderr)
				}
			}))
			continue
		}
		if code, _, stderr := callWith(t, text, args("apply -f -")...); code != exitOK {
			t.Fatal(stderr)
		}
	}
	if code, _, stderr := call(t, args("delete rollout")...); code != exitFailed || !strings.Contains(stderr, "cannot delete rollout: ") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if code, stdout, stderr := call(t, args("get rollout")...); code != exitOK || !strings.Contains(stdout, `max-failures: "3"`) {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// TestDeleteByForce checks that only what may be deleted while it is in use is deleted by force.
func TestDeleteByForce(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	for key, want := range map[string]string{
		"release/spring":    "--force is for config, environment and policy, and not for release spring; leave it out",
		"environment/basel": "nothing was deleted: ",
	} {
		if _, _, stderr := call(t, as(t, s.URL, s.Token, "acme", "delete", key, "--force")...); !strings.Contains(stderr, want) {
			t.Errorf("%s: %s", key, stderr)
		}
	}
}

// TestKindsAreCompleted checks that kinds and their objects are completed.
func TestKindsAreCompleted(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.SetUser("root", password)
	if code, _, stderr := callWith(t, accessText[:strings.Index(accessText, "users:")], as(t, s.URL, s.Token, "acme", "apply", "-f", "-")...); code != exitOK {
		t.Fatal(stderr)
	}
	for word, want := range map[string]string{"po": "policies policy/night", "c": "calendars config"} {
		if got := fmt.Sprint(strings.Join(completed(t, append(as(t, s.URL, s.Token, "acme", "get"), word)...), " ")); got != want {
			t.Errorf("%q offers %s, not %s", word, got, want)
		}
	}
}

// TestDeletionOfANamesake checks that the deletion of a user does not count as that of the
// calendar of the same name.
func TestDeletionOfANamesake(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	text := "calendars: {weekends: {kind: allow, events: [{start: 2026-12-05, rrule: FREQ=WEEKLY, all-day: true}]}}\n"
	for _, more := range []string{"", "config: {worker-applications: [{name: a}]}\nusers: {weekends: null}\n"} {
		if more != "" {
			text = ""
		}
		code, stdout, stderr := callWith(t, text+more, as(t, s.URL, s.Token, "acme", "apply", "-f", "-")...)
		if code != exitOK || strings.Contains(stdout, "no window opens") {
			t.Errorf("%q: exit code %d: %s%s", text+more, code, stdout, stderr)
		}
	}
}
