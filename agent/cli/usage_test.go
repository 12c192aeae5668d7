package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestWrongUsePointsAtTheHelp checks that the error of arguments that could not be parsed names
// the help of the command that was typed.
func TestWrongUsePointsAtTheHelp(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"frob":                                "osupgrade-agent --help",
		"--frob":                              "osupgrade-agent --help",
		"status --frob":                       "osupgrade-agent status --help",
		"--log-level debug status --frob":     "osupgrade-agent status --help",
		"status --output xml":                 "osupgrade-agent status --help",
		"webhook frob":                        "osupgrade-agent webhook --help",
		"webhook test":                        "osupgrade-agent webhook test --help",
		"worker join --frob":                  "osupgrade-agent worker join --help",
		"runs 57 58 --tenant acme":            "osupgrade-agent runs --help",
		"runs --limit -1":                     "osupgrade-agent runs --help",
		"runs help":                           "osupgrade-agent runs --help",
		"pause":                               "osupgrade-agent pause --help",
		"audit --tenant acme --limit 0":       "osupgrade-agent audit --help",
		"help":                                "osupgrade-agent --help",
		"help status":                         "osupgrade-agent status --help",
		"help worker join":                    "osupgrade-agent worker join --help",
		"help frob":                           "osupgrade-agent --help",
		"webhook help":                        "osupgrade-agent webhook --help",
		"webhook help test":                   "osupgrade-agent webhook test --help",
		"--log-level debug help webhook test": "osupgrade-agent webhook test --help",
	} {
		code, stdout, stderr := call(t, strings.Fields(line)...)
		if code != exitUsage || stdout != "" || !strings.HasSuffix(stderr, "\nSee "+want+".\n") {
			t.Errorf("%s: exit code %d, and not the help %q:\n%s%s", line, code, want, stdout, stderr)
		}
	}
}

// TestEmptyNames checks that an empty name of an object, such as a variable of a script that is not set, is
// refused: read as no flag at all, it would choose everything.
func TestEmptyNames(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"start --override-window --reason x --host=", "start --override-window --reason x --environment=", "start --override-window --reason x --until=",
		"start --override-window --reason x --release=", "retry 5 --host=", "rollback --reason x --environment=", "abort --reason x --yes --environment=",
		"hosts --host=", "status --environment=", "skip-window --reason x --environment=",
	} {
		s := fakeapi.New(t)
		s.SetHosts("acme", v1.Host{Hostname: "h01"})
		flag := line[strings.LastIndex(line, " ")+1 : len(line)-1]
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", strings.Fields(line)...)...)
		if code != exitUsage || stdout != "" || stderr != "osupgrade-agent: "+flag+" is empty; give it a value, or leave it out\n" {
			t.Errorf("%s: exit code %d:\n%s%s", line, code, stdout, stderr)
		}
	}
}

// TestNameWithoutFlag checks that a command which takes no argument, but has --environment, suggests that
// flag for one.
func TestNameWithoutFlag(t *testing.T) {
	t.Parallel()
	for line, hint := range map[string]bool{"start basel": true, "status basel": true, "pause basel": true, "runs 57 basel": false, "context list basel": false} {
		code, _, stderr := call(t, strings.Fields(line)...)
		if code != exitUsage || strings.Contains(stderr, "unexpected argument basel; to name an environment: --environment basel\n") != hint {
			t.Errorf("%s: exit code %d: %s", line, code, stderr)
		}
	}
}

// TestHabits checks that each command of other programs which people type here names commands
// that there are.
func TestHabits(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"help": "add --help", "version": "osupgrade-agent --version", "plan": "osupgrade-agent start --dry-run",
		"preflight": "osupgrade-agent start --dry-run", "freeze": "osupgrade-agent pause",
		"environment": "osupgrade-agent get environments", "environments": "osupgrade-agent apply -f FILE", "budget": "osupgrade-agent get budgets",
		"releases": "osupgrade-agent get releases", "policy": "osupgrade-agent get policies", "users": "osupgrade-agent get users",
		"config": "osupgrade-agent get config", "rollout": "osupgrade-agent edit rollout", "join-token": "osupgrade-agent credentials join-token",
		"token": "osupgrade-agent credentials token", "steps": "osupgrade-agent edit rollout", "list": "osupgrade-agent hosts", "upgrade": "osupgrade-agent start",
	} {
		code, _, stderr := call(t, typed)
		if code != exitUsage || !strings.Contains(stderr, "there is no command "+typed+"; ") || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, without %q: %s", typed, code, want, stderr)
		}
	}
	for typed, text := range habits {
		for _, named := range regexp.MustCompile(`osupgrade-agent ((?:--)?[a-z-]+)`).FindAllStringSubmatch(text, -1) {
			if code, _, stderr := call(t, named[1], "--help"); code != exitOK {
				t.Errorf("%s names %q: %s", typed, named[0], stderr)
			}
		}
		if n := below(model(t), []string{typed}); n.Parent != nil {
			t.Errorf("%s is a command", typed)
		}
	}
}

// TestMissingFlags checks that the error of a missing flag names the variable that sets it too,
// and where a token comes from if that is missing as well.
func TestMissingFlags(t *testing.T) {
	for _, name := range []string{"TOKEN", "TOKEN_FILE", "TENANT", "DATA", "CLIENT_CERT_FILE"} {
		t.Setenv("OSUPGRADE_"+name, "") // The test has it back at its end.
		if err := os.Unsetenv("OSUPGRADE_" + name); err != nil {
			t.Fatal(err)
		}
	}
	const login = "OSUPGRADE_TOKEN=$(osupgrade-agent login --user NAME)"
	check := func(line, want string, hasLogin bool) {
		t.Helper()
		code, _, stderr := call(t, strings.Fields(line)...)
		if code != exitUsage || !strings.Contains(stderr, "missing flags: "+want) || strings.Contains(stderr, login) != hasLogin {
			t.Errorf("%s: exit code %d: %s", line, code, stderr)
		}
	}
	check("status", "--tenant=STRING (or the variable OSUPGRADE_TENANT); besides, there is no token", true)
	check("pause", "--reason=STRING, --tenant=STRING (or the variable OSUPGRADE_TENANT); besides", true)
	check("dev", "--data=DIR (or the variable OSUPGRADE_DATA)\nSee", false)
	check("audit", "--tenant=STRING (or the variable OSUPGRADE_TENANT)\nSee", false)
	check("status --token-file /none", "--tenant=STRING (or the variable OSUPGRADE_TENANT)\nSee", false)
	check("status --client-cert-file /none", "--tenant=STRING (or the variable OSUPGRADE_TENANT)\nSee", false)
	check("login", "--user=NAME\nSee", false)
	t.Setenv("OSUPGRADE_TOKEN", "osu_x")
	check("status", "--tenant=STRING (or the variable OSUPGRADE_TENANT)\nSee", false)
	check("webhook add x", "--tenant=STRING (or the variable OSUPGRADE_TENANT), --url=URL\nSee", false)
	t.Setenv("OSUPGRADE_TOKEN", "")
	if code, _, stderr := call(t, "status", "--tenant", "acme"); code != exitFailed || !strings.Contains(stderr, login) {
		t.Errorf("without a token: exit code %d: %s", code, stderr)
	}
	t.Setenv("OSUPGRADE_TOKEN", "osu_x")
	if code, _, stderr := call(t, "status", "--tenant", "acme", "--endpoint", "http://127.0.0.1:1"); code != exitFailed || !strings.Contains(stderr, "OSUPGRADE_ENDPOINT") {
		t.Errorf("at a wrong address: exit code %d: %s", code, stderr)
	}
}

// TestHelpNamesVariables checks that --help and the man pages name the variables of all flags,
// also of those that are paths and whose variable is not set.
func TestHelpNamesVariables(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{"serve": "($OSUPGRADE_DATA)", "status": "($OSUPGRADE_TOKEN_FILE)", "hosts": "($OSUPGRADE_TENANT)"} {
		_, help, _ := call(t, command, "--help")
		if words := strings.Join(strings.Fields(help), " "); !strings.Contains(words, want) {
			t.Errorf("%s --help does not name %s:\n%s", command, want, help)
		}
	}
	dir := t.TempDir()
	call(t, "man", "--out", dir)
	if page, err := os.ReadFile(dir + "/osupgrade-agent-serve.1"); err != nil || !strings.Contains(string(page), "Variable: OSUPGRADE_DATA.") {
		t.Errorf("the man page of serve does not name OSUPGRADE_DATA, %v:\n%s", err, page)
	}
}

// TestShellCommandsAreApart checks that --help lists completion and man pages under a heading of
// their own, after the others.
func TestShellCommandsAreApart(t *testing.T) {
	t.Parallel()
	_, help, _ := call(t, "--help")
	if _, last, found := strings.Cut(help, "\nShell completion and man pages:\n"); !found || !strings.Contains(last, "\n  completion ") && !strings.HasPrefix(last, "  completion ") || !strings.Contains(last, "\n  man ") {
		t.Errorf("--help is\n%s", help)
	}
}
