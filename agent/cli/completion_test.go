package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// completion prints the script of a shell.
func completion(t *testing.T, shell string) string {
	t.Helper()
	code, stdout, stderr := call(t, "completion", shell)
	if code != exitOK || stderr != "" {
		t.Fatalf("completion %s ends with %d: %s", shell, code, stderr)
	}
	return stdout
}

// model returns the commands and flags of the program.
func model(t *testing.T) *kong.Node {
	t.Helper()
	parser, err := newParser(&commands{}, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model.Node
}

// complete returns what bash offers for the last of some words.
func complete(t *testing.T, script, dir string, words ...string) []string {
	t.Helper()
	const ask = `source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
[[ $(complete -p osupgrade-agent) == "complete -F _osupgrade_agent osupgrade-agent" ]] || exit 9
_osupgrade_agent
for reply in "${COMPREPLY[@]}"; do echo "$reply"; done`
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{"--norc", "-uc", ask, "bash", script, "osupgrade-agent"}, words...)...) //nolint:gosec // our own script
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", words, err, out)
	}
	offered := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	slices.Sort(offered)
	return offered
}

// TestBashCompletion asks the real bash what it offers.
func TestBashCompletion(t *testing.T) {
	t.Parallel()
	needShell(t, "bash")
	dir := t.TempDir()
	write := writeIn(t, dir)
	write("site one.tar", "")
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	script := write("script", completion(t, "bash"))
	for _, c := range []struct {
		name  string
		words []string
		want  string // Joined by |.
	}{
		{"commands", []string{"re"}, "recover|release|restore|resume|retry"},
		{"commands after a flag with a value", []string{"--log-level", "debug", "wat"}, "watch"},
		{"the value of a flag is no command", []string{"--log-level", "start", "wat"}, "watch"},
		{"commands of a command", []string{"credentials", ""}, "approle|certificate|host|join-token|list|remove|revoke|rotate|secret-id|token|user"},
		{"flags of a command", []string{"start", "--w"}, "--wait"},
		{"flags of a command's command", []string{"credentials", "token", "--n"}, "--name|--new-site"},
		{"flags of the program, at a command", []string{"start", "--log"}, "--log-level"},
		{"flags of another command", []string{"status", "--override"}, ""},
		{"flags without a hyphen, where there is no argument", []string{"credentials", "list", ""}, "--data|--help|--log-level|--version|-h"},
		{"a short flag", []string{"apply", "-f", "sub"}, "sub"},
		{"an enum", []string{"--log-level", ""}, "debug|error|info|warn"},
		{"an enum after =", []string{"--log-level", "=", ""}, "debug|error|info|warn"},
		{"an enum right after =", []string{"--log-level", "="}, "debug|error|info|warn"},
		{"an enum's beginning after =", []string{"--log-level", "=", "d"}, "debug"},
		{"words of a placeholder", []string{"status", "-o", ""}, "json|text"},
		{"a flag after a value after =", []string{"status", "--output", "=", "json", "--ut"}, "--utc"},
		{"a list of words", []string{"credentials", "token", "--allow", "read,s"}, "read,start"},
		{"a text", []string{"start", "--reason", ""}, ""},
		{"a text that is a command", []string{"start", "--reason", "abort", "--w"}, "--wait"},
		{"words of an argument", []string{"completion", ""}, "bash|fish|zsh"},
		{"a file as an argument", []string{"restore", "s"}, "script|site one.tar|sub"},
		{"a file as a flag", []string{"backup", "--out", "site"}, "site one.tar"},
		{"a folder as a flag", []string{"dev", "--data", "s"}, "sub"},
		{"the name of a host", []string{"release", ""}, ""},
		{"an unknown command", []string{"upgrade", "--ver"}, "--version"},
	} {
		if got := strings.Join(complete(t, script, dir, c.words...), "|"); got != c.want {
			t.Errorf("%s: %q offers %s, not %s", c.name, c.words, got, c.want)
		}
	}
	// Each command offers the flags that the parser takes, no more and no less.
	for _, n := range withCommands(model(t)) {
		var want []string
		for at := n; at != nil; at = at.Parent {
			for _, f := range at.Flags {
				want = append(want, "--"+f.Name)
			}
		}
		slices.Sort(want)
		words := append(strings.Fields(commandName(n)), "--")
		if got := complete(t, script, dir, words...); !slices.Equal(got, want) {
			t.Errorf("%q offers %q, not %q", words, got, want)
		}
	}
}

// TestCompletionScripts checks that the scripts of zsh and fish have each command, each
// of its flags and their words, and that the shells can read them where they are there.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	zsh, fish := completion(t, "zsh"), completion(t, "fish")
	for _, n := range withCommands(model(t)) {
		name := commandName(n)
		_, function, found := strings.Cut(zsh, "\n"+identifier(n)+"() {\n")
		function, _, _ = strings.Cut(function, "\n}\n")
		if !found || strings.Count(zsh, "\n"+identifier(n)+"() {\n") != 1 {
			t.Errorf("zsh has no function, or more than one, for %q", name)
		}
		for _, child := range visible(n) {
			if !strings.Contains(function, " '"+child.Name+":") || !strings.Contains(function, child.Name+") "+identifier(child)+" ;;") {
				t.Errorf("zsh does not know %s below %q:\n%s", child.Name, name, function)
			}
			if !strings.Contains(fish, `__osupgrade_agent_at "`+name+`"' -a `+child.Name+" -d ") {
				t.Errorf("fish does not know %s below %q", child.Name, name)
			}
		}
		for at := n; at != nil; at = at.Parent {
			for _, f := range at.Flags {
				if !strings.Contains(function, "--"+f.Name) {
					t.Errorf("zsh does not know --%s of %q:\n%s", f.Name, name, function)
				}
				if strings.Count(fish, `__osupgrade_agent_at "`+name+`"' -l `+f.Name+" ")+strings.Count(fish, `__osupgrade_agent_at "`+name+`"' -s `+string(f.Short)+" -l "+f.Name+" ") != 1 {
					t.Errorf("fish does not know --%s of %q", f.Name, name)
				}
			}
		}
	}
	for _, part := range []string{
		`'--log-level=[How much to log to standard error\: debug, info, warn or error.]:log-level:(debug info warn error)'`,
		`'(-o --output)'{-o,--output=}'[Output format\: text or json.]:output:(text json)'`,
		`'--data=[The site'\''s folder.]:data:_files'`, `:data:_files -/'`, `'*--host=[`, `'*'{-f,--file=}'[`,
		`'1:shell:(bash zsh fish)'`, `'1:file:_files'`, `:allow:_values -s , allow admin operator approver viewer calendar read write start join'`,
	} {
		if !strings.Contains(zsh, part) {
			t.Errorf("the script for zsh has no %s", part)
		}
	}
	for _, part := range []string{
		` -s o -l output -x -a 'text json' -d 'Output format`, ` -l data -r -F -d 'The site\'s folder.'`, ` -l data -x -a '(__fish_complete_directories `,
		`_at "restore"' -r -F` + "\n", `_at "completion"' -a 'bash zsh fish'` + "\n", ` -l reason -x -d`, ` -l wait -d`,
	} {
		if !strings.Contains(fish, part) {
			t.Errorf("the script for fish has no %s", part)
		}
	}
	for shell, script := range map[string]string{"bash": completion(t, "bash"), "zsh": zsh, "fish": fish} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			needShell(t, shell)
			file := filepath.Join(t.TempDir(), "script")
			writeIn(t, filepath.Dir(file))("script", script)
			if out, err := exec.CommandContext(t.Context(), shell, "-n", file).CombinedOutput(); err != nil || len(out) > 0 { //nolint:gosec // our own script
				t.Errorf("%s -n: %v: %s", shell, err, out)
			}
		})
	}
	code, _, stderr := call(t, "completion", "tcsh")
	if code != exitUsage || !strings.Contains(stderr, `must be one of "bash","zsh","fish" but got "tcsh"`) {
		t.Errorf("another shell: %d %s", code, stderr)
	}
}

// needShell skips a test, and says why, on a machine that lacks a program.
func needShell(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("NOT TESTED: this machine has no %s; install it to try what is made for it", program)
	}
}
