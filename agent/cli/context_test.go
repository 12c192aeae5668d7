package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// withoutSite takes the variables that choose a site from whoever types the commands, and returns
// an empty folder for the configuration of this person.
func withoutSite(t *testing.T) string {
	t.Helper()
	for _, name := range append([]string{contextVariable}, overriding...) {
		t.Setenv(name, "") // The test has it back at its end.
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	return t.TempDir()
}

// did calls the program, which must succeed, and returns what it prints.
func did(t *testing.T, line string, more ...string) string {
	t.Helper()
	code, stdout, stderr := call(t, append(strings.Fields(line), more...)...)
	if code != exitOK {
		t.Fatalf("%s: exit code %d: %s%s", line, code, stdout, stderr)
	}
	return stdout
}

// failed calls the program, which must fail with a text.
func failed(t *testing.T, want int, part, line string) {
	t.Helper()
	code, stdout, stderr := call(t, strings.Fields(line)...)
	if code != want || !strings.Contains(stderr, part) {
		t.Errorf("%s: exit code %d, not %d, or no %q: %s%s", line, code, want, part, stdout, stderr)
	}
}

// twoSites are sites with a host each, named after them, and a context for each, south with
// tenant beta.
func twoSites(t *testing.T) (north, south *fakeapi.Server) {
	t.Helper()
	north, south = fakeapi.New(t), fakeapi.New(t)
	write := writeIn(t, t.TempDir())
	north.SetHosts("acme", v1.Host{Hostname: "host-of-north"})
	south.SetHosts("beta", v1.Host{Hostname: "host-of-south"})
	did(t, "context add north --tenant acme --endpoint", north.URL, "--token-file", write("north", north.Token))
	did(t, "context add south --tenant beta --endpoint", south.URL, "--token-command", "cat", "--token-arg", write("the south", south.Token))
	return north, south
}

// TestContexts goes through the commands for contexts, and calls the sites that they name.
func TestContexts(t *testing.T) {
	config := withoutSite(t)
	t.Setenv("XDG_CONFIG_HOME", config)
	if got := did(t, "context list"); !strings.Contains(got, "There are no contexts. To add one: osupgrade-agent context add") {
		t.Errorf("without contexts it lists %s", got)
	}
	north, south := twoSites(t)
	failed(t, exitUsage, "missing flags: --tenant", "hosts")
	if got, want := did(t, "context use north"), "Commands use context north: "+north.URL+", tenant acme.\n"; got != want {
		t.Errorf("it says %s", got)
	}
	for line, want := range map[string]string{"hosts": "host-of-north", "hosts --context south": "host-of-south"} {
		if got := did(t, line); !strings.Contains(got, want) {
			t.Errorf("%s lists %s", line, got)
		}
	}
	for line, want := range map[string]string{"status": "context:      north\ntenant:       acme\n", "status --context south": "context:      south\ntenant:       beta\n"} {
		if got := did(t, line); !strings.HasPrefix(got, want) {
			t.Errorf("%s begins with %s", line, got)
		}
	}
	list := strings.Join(strings.Fields(did(t, "context list")), " ")
	for _, want := range []string{"* north " + north.URL + " acme token of ", " south " + south.URL + " beta token by cat "} {
		if !strings.Contains(list, want) {
			t.Errorf("there is no %q in %s", want, list)
		}
	}
	if got := did(t, "context show --output json"); !strings.Contains(got, `"name": "north"`) || !strings.Contains(got, `"current": true`) {
		t.Errorf("it shows %s", got)
	}
	t.Setenv(contextVariable, "south")
	if got := did(t, "hosts"); !strings.Contains(got, "host-of-south") {
		t.Errorf("by the variable it lists %s", got)
	}
	if got := did(t, "context show"); !strings.HasPrefix(got, "context:   south\n") {
		t.Errorf("by the variable it shows %s", got)
	}
	t.Setenv(contextVariable, "")
	if got := did(t, "context delete north"); got != "Context north is deleted. It was the current one, so now there is none.\n" {
		t.Errorf("it says %s", got)
	}
	failed(t, exitFailed, `there is no context "north"; use one of south`, "context use north")
	failed(t, exitUsage, `there is no context "north"; use one of south`, "hosts --tenant acme --context north")
	text, err := os.ReadFile(filepath.Join(config, "osupgrade", "contexts.yaml"))
	if err != nil || strings.Contains(string(text), north.Token) || strings.Contains(string(text), south.Token) {
		t.Errorf("the file has a token, or %v:\n%s", err, text)
	}
}

// TestOneContext checks that status names no context where there is only one.
func TestOneContext(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", withoutSite(t))
	twoSites(t)
	did(t, "context delete south")
	did(t, "context use north")
	if got := did(t, "status"); strings.Contains(got, "context:") {
		t.Errorf("it shows %s", got)
	}
}

// TestContextIsOverridden checks that flags and variables override the current context, that a
// token is never sent to an address that is not that of its context, and that a context and an
// address at once are refused.
func TestContextIsOverridden(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", withoutSite(t))
	north, south := twoSites(t)
	did(t, "context use north")
	own := writeIn(t, t.TempDir())("token", south.Token)
	failed(t, exitFailed, "there is no token", "hosts --tenant acme --endpoint "+south.URL)
	failed(t, exitUsage, "missing flags: --tenant", "hosts --token-file "+own+" --endpoint "+south.URL)
	if got := did(t, "hosts --tenant beta --endpoint", south.URL, "--token-file", own); !strings.Contains(got, "host-of-south") {
		t.Errorf("by flags it lists %s", got)
	}
	failed(t, exitUsage, "--context names a site by context north, and --endpoint names it by an address; leave one of them out", "hosts --context north --endpoint "+south.URL)
	t.Setenv("OSUPGRADE_TENANT", "gamma")
	if got := did(t, "hosts"); strings.Contains(got, "host-of-north") {
		t.Errorf("with another tenant it lists %s", got)
	}
	t.Setenv("OSUPGRADE_TENANT", "")
	t.Setenv(endpointVariable, south.URL)
	failed(t, exitUsage, "and the variable OSUPGRADE_ENDPOINT names it by an address", "hosts --tenant acme --context north")
	t.Setenv("OSUPGRADE_TOKEN", south.Token)
	if got := did(t, "hosts --tenant beta"); !strings.Contains(got, "host-of-south") {
		t.Errorf("by variables it lists %s", got)
	}
	code, _, stderr := call(t, "context", "list")
	if code != exitOK || !strings.Contains(stderr, "variables of this shell override the context: OSUPGRADE_ENDPOINT, OSUPGRADE_TOKEN\n") {
		t.Errorf("the list ends with %d: %s", code, stderr)
	}
	t.Setenv(contextVariable, "north")
	failed(t, exitUsage, "the variable OSUPGRADE_CONTEXT names a site by context north, and the variable OSUPGRADE_ENDPOINT", "hosts --tenant acme")
	t.Setenv(endpointVariable, "")
	t.Setenv("OSUPGRADE_TOKEN", north.Token)
	code, stdout, stderr := call(t, "hosts")
	if want := "warning: OSUPGRADE_TOKEN overrides the token of "; code != exitOK || !strings.Contains(stdout, "host-of-north") || strings.Count(stderr, want) != 1 || !strings.Contains(stderr, " of context north; ") {
		t.Errorf("with a token for the context it ends with %d: %s%s", code, stdout, stderr)
	}
	if _, _, stderr = call(t, "hosts", "--token-file", own); strings.Contains(stderr, "warning") {
		t.Errorf("with a flag it warns: %s", stderr)
	}
	t.Setenv("OSUPGRADE_TOKEN", "")
	if got := did(t, "hosts"); !strings.Contains(got, "host-of-north") {
		t.Errorf("by the variable it lists %s", got)
	}
}

// TestContextOfManagement checks that the commands that manage a site use a context, too, unless
// a folder is named, and that the worker's program has the same commands.
func TestContextOfManagement(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", withoutSite(t))
	twoSites(t)
	did(t, "context use north")
	if got := did(t, "tenant list"); !strings.Contains(got, "NAME") {
		t.Errorf("it lists %s", got)
	}
	failed(t, exitFailed, "data: ", "tenant list --data "+t.TempDir())
	failed(t, exitUsage, "--data names a site on this machine, but --context", "tenant list --context north --data "+t.TempDir())
	t.Setenv("OSUPGRADE_DATA", t.TempDir())
	failed(t, exitFailed, "data: ", "tenant list")
	did(t, "tenant list --context north")
}

// TestContextLogin checks that a login in a context is kept for it alone, and that the site's
// refusal says how to log in again.
func TestContextLogin(t *testing.T) {
	config := withoutSite(t)
	t.Setenv("XDG_CONFIG_HOME", config)
	s := fakeapi.New(t)
	s.SetHosts("acme", v1.Host{Hostname: "h01"})
	s.SetUser("ann", "correct horse", time.Hour)
	did(t, "context add north --tenant acme --user ann --endpoint", s.URL)
	did(t, "context use north")
	failed(t, exitFailed, "context north: ann is not logged in; run osupgrade-agent login --context north", "hosts")
	code, stdout, stderr := callWith(t, "correct horse\n", "login")
	if code != exitOK || stdout != "" || stderr != "Logged in to context north as ann.\n" {
		t.Fatalf("it ends with %d: %s%s", code, stdout, stderr)
	}
	if got := did(t, "hosts"); !strings.Contains(got, "h01") {
		t.Errorf("it lists %s", got)
	}
	file := filepath.Join(config, "osupgrade", "tokens", "north")
	if err := os.WriteFile(file, []byte("osu_old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	failed(t, exitFailed, "; to log in again: osupgrade-agent login --context north", "hosts")
	if err := os.Chmod(file, 0o644); err != nil { //nolint:gosec // that is what is refused
		t.Fatal(err)
	}
	failed(t, exitFailed, "is open to other users (mode 0644); run chmod 600 "+file, "hosts")
	// The token of one address is not sent to another.
	did(t, "context add north --replace --tenant acme --user ann --endpoint", s.URL+"/")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the token is there: %v", err)
	}
	did(t, "context add south --tenant acme --token-file", file, "--endpoint", s.URL)
	failed(t, exitFailed, "context south gets in by token-file, not by a login", "login --context south --user ann")
	did(t, "context add west --tenant acme --endpoint", s.URL)
	failed(t, exitUsage, "missing flags: --user=NAME", "login --context west")
	if code, _, stderr := callWith(t, "correct horse\n", "login", "--context", "west", "--user", "ann"); code != exitOK {
		t.Errorf("it ends with %d: %s", code, stderr)
	}
	if got := did(t, "context show west"); !strings.Contains(got, "as:        login of ann\n") {
		t.Errorf("it shows %s", got)
	}
	code, stdout, stderr = callWith(t, "correct horse\n", "login", "--endpoint", s.URL, "--user", "ann")
	if code != exitOK || !strings.HasPrefix(stdout, "osu_") {
		t.Errorf("without a context it ends with %d: %s%s", code, stdout, stderr)
	}
}

// TestWrongContexts checks what is told of contexts that cannot be used.
func TestWrongContexts(t *testing.T) {
	config := withoutSite(t)
	t.Setenv("XDG_CONFIG_HOME", config)
	s := fakeapi.New(t)
	did(t, "context add north --tenant acme --endpoint", s.URL)
	did(t, "context use north")
	failed(t, exitFailed, "there is a context north already; to replace it, add --replace", "context add north --endpoint https://x")
	failed(t, exitFailed, "there is no token", "hosts")
	failed(t, exitUsage, `there is no context "nowhere"; use one of north`, "hosts --context nowhere")
	for line, want := range map[string]string{
		"context add A --endpoint https://x":                            `name: "A" is not the name of a context`,
		"context add a --endpoint x":                                    "endpoint",
		"context add a":                                                 "missing flags: --endpoint=URL",
		"context add a --endpoint https://x --user ann --token-file /t": "--user and --token-file can't be used together",
		"context add a --endpoint https://x --token-arg x":              "--token-arg is for --token-command, which is missing",
		"context add a --endpoint https://x --client-cert-file /c":      "client-cert-file and client-key-file belong together",
		"context add a --endpoint https://x --tenant T":                 `tenant: "T" is not the name of a tenant`,
		"context list --output":                                         "--output: the format is missing",
	} {
		failed(t, exitUsage, want, line)
	}
	did(t, "context add bad --tenant acme --token-command /nonexistent/program --endpoint", s.URL)
	failed(t, exitFailed, "context bad: token-command: /nonexistent/program: ", "hosts --context bad")
	did(t, "context add empty --tenant acme --token-command true --endpoint", s.URL)
	failed(t, exitFailed, "context empty: token-command: true: it printed no token", "hosts --context empty")
	did(t, "context add cut --tenant acme --token-file /nonexistent --endpoint", s.URL)
	failed(t, exitFailed, "context cut: token-file: ", "hosts --context cut")
	file := filepath.Join(config, "osupgrade", "contexts.yaml")
	if err := os.Chmod(file, 0o644); err != nil { //nolint:gosec // that is what is refused
		t.Fatal(err)
	}
	for _, line := range []string{"hosts", "context list", "context use north", "tenant list"} {
		failed(t, exitFailed, "is open to other users (mode 0644); check what it says, and run chmod 600 "+file, line)
	}
	did(t, "validate -f", writeIn(t, t.TempDir())("a.yaml", "rollout: {}\n"))
	did(t, "--version")
}

// TestContextCompletion checks that contexts are completed without a site, and that names of a
// site come from the context.
func TestContextCompletion(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", withoutSite(t))
	twoSites(t)
	did(t, "context use south")
	for line, want := range map[string]string{
		"context use ": "north south", "context delete n": "north", "hosts --context ": "north south", "context show ": "north south",
		"hosts ": "host-of-south", "hosts --context north ": "host-of-north",
	} {
		if got := strings.Join(completed(t, strings.Split(line, " ")...), " "); got != want {
			t.Errorf("%q offers %s, not %s", line, got, want)
		}
	}
}

// TestChoice checks which context a command uses: what is typed counts more than a variable, and
// a variable more than the current context.
func TestChoice(t *testing.T) {
	t.Parallel()
	var got []string
	for i := range 16 {
		given := func(bit int, text string) string {
			if i&bit == 0 {
				return ""
			}
			return text
		}
		name, err := choice{given(1, "flag"), given(2, "variable"), given(4, "https://flag"), given(8, "https://variable")}.of("current")
		if err != nil {
			name = "refused"
		}
		got = append(got, fmt.Sprintf("%04b %s", i, name))
	}
	want := []string{
		"0000 current", "0001 flag", "0010 variable", "0011 flag",
		"0100 ", "0101 refused", "0110 ", "0111 refused",
		"1000 ", "1001 refused", "1010 refused", "1011 refused",
		"1100 ", "1101 refused", "1110 ", "1111 refused",
	}
	if !slices.Equal(got, want) {
		t.Errorf("it is %q", got)
	}
}
