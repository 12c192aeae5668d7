package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/cli/shell"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// asProgram makes this test the program, for the shells that call it.
const asProgram = "OSUPGRADE_TEST_IS_THE_PROGRAM"

// TestMain has whoever types the commands be in Stockholm. It leaves time.Local alone, because
// a timer of the embedded server reads that from the start of the process.
func TestMain(m *testing.M) {
	err := os.Setenv("TZ", "Europe/Stockholm")
	if zone := time.Local.String(); err != nil || zone != "Europe/Stockholm" {
		panic("the local time is that of " + zone)
	}
	if os.Getenv(asProgram) == "" {
		err = os.Setenv("XDG_CONFIG_HOME", "/nonexistent") // The contexts of whoever runs the tests.
	} else {
		os.Exit(Run(context.Background(), "1.2.3", os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

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

// askShell runs a script in a shell that has loaded the completion and can call the program,
// and returns the lines that it prints, sorted.
func askShell(t *testing.T, name, dir, ask string, words ...string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	program := writeIn(t, bin)(programName, "#!/bin/sh\nexec env "+asProgram+"=1 "+self+` "$@"`+"\n")
	if err := os.Chmod(program, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	file := writeIn(t, bin)("completion", completion(t, name))
	args := map[string][]string{"bash": {"--norc", "-uc", ask, "bash"}, "zsh": {"-fc", ask, "zsh"}, "fish": {"-N", "-c", ask}}[name]
	cmd := exec.CommandContext(t.Context(), name, append(append(args, file, programName), words...)...) //nolint:gosec // our own script
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+bin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", words, err, out)
	}
	offered := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	slices.Sort(offered)
	return offered
}

// The ways to ask a shell what it offers for the last of some words.
const (
	askBash = `source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
[[ $(complete -p osupgrade-agent) == "complete -F _osupgrade_agent osupgrade-agent" ]] || exit 9
_osupgrade_agent
for reply in "${COMPREPLY[@]}"; do echo "$reply"; done`
	// The functions of zsh that show what is offered work only at a keyboard.
	askZsh = `compdef() { [[ "$*" == "_osupgrade_agent osupgrade-agent" ]] || exit 9 }
source "$1"; shift
_describe() { print -rl -- "${(@P)2}" }
_files() { if [[ $1 == -/ ]]; then print -rl -- *(/N); else print -rl -- *(N); fi }
compset() { true }
words=("$@") CURRENT=$#
_osupgrade_agent`
	askFish = `source $argv[1]; complete -C "$argv[2..-1]"`
)

// makeFiles makes files and a folder to complete, and returns where.
func makeFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := writeIn(t, dir)
	write("site one.tar", "")
	write("script", "")
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestBashCompletion asks the real bash what it offers.
func TestBashCompletion(t *testing.T) {
	t.Parallel()
	needShell(t, "bash")
	dir := makeFiles(t)
	for _, c := range []struct {
		name  string
		words []string
		want  string // Joined by |.
	}{
		{"commands", []string{"re"}, "recover|refuse-host|release|restore|resume|retry"},
		{"commands after a flag with a value", []string{"--log-level", "debug", "wat"}, "watch"},
		{"the value of a flag is no command", []string{"--log-level", "start", "wat"}, "watch"},
		{"commands of a command", []string{"credentials", ""}, "approle|host|join-token|list|remove|rotate|secret-id|token|user"},
		{"flags of a command", []string{"start", "--w"}, "--wait"},
		{"flags of a command's command", []string{"credentials", "token", "--n"}, "--name|--new-site"},
		{"flags of the program, at a command", []string{"start", "--log"}, "--log-level"},
		{"flags of another command", []string{"status", "--override"}, ""},
		{"flags without a hyphen, where there is no argument", []string{"credentials", "list", ""}, "--ca-file|--client-cert-file|--client-key-file|--context|--data|--endpoint|--help|--log-level|--output|--token-file|--utc|--version|-h|-o"},
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
		{"after --, an argument", []string{"busy", "--", "--f"}, ""},
		{"flags of the command that another stands for", []string{"worker", "--key"}, "--key-file"},
		{"the second argument, where there is one", []string{"release", "h01", "--ten"}, "--tenant"},
		{"nothing is run", []string{"start", "--reason", "$(touch sub/run)", "--w"}, "--wait"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(askShell(t, "bash", dir, askBash, c.words...), "|"); got != c.want {
				t.Errorf("%q offers %s, not %s", c.words, got, c.want)
			}
		})
	}
	t.Cleanup(func() {
		if made, err := os.ReadDir(filepath.Join(dir, "sub")); err != nil || len(made) > 0 {
			t.Errorf("a word was run: %v, %v", made, err)
		}
	})
}

// TestZshCompletion and TestFishCompletion ask the real shells, where they are there.
func TestZshCompletion(t *testing.T) {
	t.Parallel()
	needShell(t, "zsh")
	dir := makeFiles(t)
	for line, want := range map[string]string{
		"wat":             "watch:" + helpOf(t, "watch", ""),
		"start --wa":      "--wait:" + helpOf(t, "start", "wait"),
		"--log-level=d":   "--log-level=debug:",
		"status -o ":      "json:|text:",
		"restore s":       "script|site one.tar|sub",
		"dev --data s":    "sub",
		"dev --data=s":    "sub",
		"start --reason ": "",
		"completion z":    "zsh:",
	} {
		if got := strings.Join(askShell(t, "zsh", dir, askZsh, strings.Split(line, " ")...), "|"); got != want {
			t.Errorf("%q offers %s, not %s", line, got, want)
		}
	}
}

func TestFishCompletion(t *testing.T) {
	t.Parallel()
	needShell(t, "fish")
	dir := makeFiles(t)
	for line, want := range map[string]string{
		"wat":             "watch\t" + helpOf(t, "watch", ""),
		"start --wa":      "--wait\t" + helpOf(t, "start", "wait"),
		"--log-level=d":   "--log-level=debug",
		"status -o ":      "json|text",
		"restore s":       "script|site one.tar|sub/",
		"dev --data s":    "sub/",
		"dev --data=s":    "--data=sub/",
		"start --reason ": "",
	} {
		if got := strings.Join(askShell(t, "fish", dir, askFish, strings.Split(line, " ")...), "|"); got != want {
			t.Errorf("%q offers %s, not %s", line, got, want)
		}
	}
}

// helpOf returns the help of a command, or of one of its flags.
func helpOf(t *testing.T, command, flag string) string {
	t.Helper()
	for _, n := range shell.Commands(model(t)) {
		for _, f := range n.Flags {
			if shell.Name(n) == command && f.Name == flag {
				return f.Help
			}
		}
		if shell.Name(n) == command && flag == "" {
			return n.Help
		}
	}
	t.Fatalf("there is no %s --%s", command, flag)
	return ""
}

// TestCompletionOfFlags checks that each command offers the flags that the parser takes, no
// more and no less.
func TestCompletionOfFlags(t *testing.T) {
	t.Parallel()
	for _, n := range shell.Commands(model(t)) {
		var want []string
		at := n
		if n.DefaultCmd != nil {
			at = n.DefaultCmd
		}
		for ; at != nil; at = at.Parent {
			for _, f := range at.Flags {
				want = append(want, "--"+f.Name)
			}
		}
		slices.Sort(want)
		words := append(strings.Fields(shell.Name(n)), "--")
		if got := completed(t, words...); !slices.Equal(got, want) {
			t.Errorf("%q offers %q, not %q", words, got, want)
		}
	}
}

// completed returns the words that the program offers for the last of some words, sorted.
func completed(t *testing.T, words ...string) []string {
	t.Helper()
	code, stdout, stderr := call(t, append([]string{"__complete"}, words...)...)
	if code != exitOK || stderr != "" {
		t.Fatalf("%q ends with %d: %s", words, code, stderr)
	}
	var offered []string
	for line := range strings.Lines(stdout) {
		if word, _, isWord := strings.Cut(line, "\t"); isWord {
			offered = append(offered, word)
		}
	}
	slices.Sort(offered)
	return offered
}

// TestCompletionScripts checks that the shells can read the scripts.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			needShell(t, shell)
			file := filepath.Join(t.TempDir(), "script")
			writeIn(t, filepath.Dir(file))("script", completion(t, shell))
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

// TestCompletionOfNames checks that names come from the site that the flags name, only those
// that a shell takes as they stand, and that a site that does not answer is waited for only
// briefly and in silence.
func TestCompletionOfNames(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	basel, bern := map[string]string{"shop": "basel", "zone": "a"}, map[string]string{"shop": "bern"}
	s.SetHosts("acme", v1.Host{Hostname: "h01", Labels: basel, Role: "till"}, v1.Host{Hostname: "h02", Labels: bern, Role: "cash desk"}, v1.Host{Hostname: "$(reboot)"}, v1.Host{Hostname: "h 03"})
	s.AddRun("acme", v1.Run{ID: 41, Phase: "finished", Result: "completed", Reason: "all hosts\tare upgraded"})
	s.AddRun("acme", v1.Run{ID: 42, Phase: "upgrading", Stages: []v1.RunStage{{Name: "canary", Phase: "done"}, {Name: "rest", Phase: "waiting-for-approval"}}})
	for command, want := range map[string]string{
		"hosts ":                    "h01|h02",
		"release h02":               "h02",
		"start --host h01,h":        "h01,h01|h01,h02",
		"start --host=":             "--host=h01|--host=h02",
		"runs ":                     "41|42",
		"hosts --label ":            "shop=basel|shop=bern|zone=a",
		"status --label shop=be":    "shop=bern",
		"start --label=shop=ba":     "--label=shop=basel",
		"start --label shop = ":     "basel|bern",
		"start --label shop = be":   "bern",
		"start --label = shop = be": "bern",
		"watch --role ":             "till",
		"watch --tenant ":           "acme",
		"watch 42":                  "42",
		"approve ":                  "canary|rest",
		"approve --reason ":         "",
	} {
		words := strings.Split(command, " ")
		words = append(as(t, s.URL, s.Token, "acme", words[0]), words[1:]...)
		if got := strings.Join(completed(t, words...), "|"); got != want {
			t.Errorf("%q offers %s, not %s", command, got, want)
		}
	}
	s.Inject("GET", "/hosts", s.Hang())
	started := time.Now()
	if got := completed(t, append(as(t, s.URL, s.Token, "acme", "hosts"), "")...); len(got) != 0 {
		t.Errorf("a site that hangs has %q", got)
	}
	if took := time.Since(started); took > 10*completionLimit {
		t.Errorf("a site that hangs was waited for %s", took)
	}
	if got := completed(t, append(as(t, "http://127.0.0.1:1", s.Token, "acme", "hosts"), "")...); len(got) != 0 {
		t.Errorf("a site that is not there has %q", got)
	}
	if got := completed(t, "hosts", "--token-file", "/none", "--tenant", "acme", ""); len(got) != 0 {
		t.Errorf("without a token there is %q", got)
	}
}
