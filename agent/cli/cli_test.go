package cli

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/cli/shell"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
)

// testTimeout bounds the wait for what must happen. It measures nothing: what
// takes so long does not happen at all.
const testTimeout = time.Minute

// call runs the program in this process.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return callWith(t, "", args...)
}

// callWith is call with a text on standard input.
func callWith(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Run(t.Context(), "1.2.3", args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// use is a way to call the program, and what comes of it.
type use struct {
	args []string
	code int
	want string
}

// try calls the program in each way.
func try(t *testing.T, uses map[string]use) {
	t.Helper()
	for name, c := range uses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := call(t, c.args...)
			if code != c.code || !strings.Contains(stdout+stderr, c.want) {
				t.Errorf("exit code %d, not %d, or no word of %q:\n%s%s", code, c.code, c.want, stdout, stderr)
			}
			if strings.Contains(stdout+stderr, "secret") {
				t.Error("a secret is shown")
			}
		})
	}
}

// writeIn returns what writes files in a folder.
func writeIn(t *testing.T, dir string) func(name, text string) string {
	t.Helper()
	return func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// serveIn and workerIn return what calls serve, and worker, in a folder.
func serveIn(dir string) func(more ...string) []string {
	return func(more ...string) []string { return append([]string{"serve", "--data", dir + "/site"}, more...) }
}

func workerIn(dir string) func(more ...string) []string {
	return func(more ...string) []string {
		return append([]string{"worker", "--application", "app", "--tenant", "acme", "--host", "h01", "--scripts", dir, "--state", dir + "/w"}, more...)
	}
}

// TestWrongUse checks exit codes and that a person is told what would be
// right.
func TestWrongUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, serve, host := writeIn(t, dir), serveIn(dir), workerIn(dir)
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	try(t, map[string]use{
		"no command and a flag":    {[]string{"--log-level", "debug"}, exitUsage, "expected one of"},
		"unknown command":          {[]string{"frob"}, exitUsage, "frob"},
		"unknown flag":             {[]string{"dev", "--hots", "3"}, exitUsage, "--hosts"},
		"flag without value":       {[]string{"dev", "--data"}, exitUsage, "--data"},
		"log level":                {[]string{"dev", "--data", dir, "--log-level", "loud"}, exitUsage, `"debug","info","warn","error"`},
		"too many hosts":           {[]string{"dev", "--data", dir, "--hosts", "100000"}, exitUsage, "use 0 to 10000"},
		"label of no host":         {[]string{"dev", "--data", dir, "--label", "h04:shop=basel"}, exitUsage, `label: "h04:shop=basel" names none of the 3 hosts; use HOST:KEY=VALUE`},
		"label without host":       {[]string{"dev", "--data", dir, "--label", "shop=basel"}, exitUsage, `label: "shop=basel" names none of the 3 hosts`},
		"label without value":      {[]string{"dev", "--data", dir, "--label", "h01:shop"}, exitUsage, `label: "shop" is invalid; use key=value`},
		"address of dev":           {[]string{"dev", "--data", dir, "--listen", "foo"}, exitUsage, `listen "foo" is not host:port`},
		"a length of nothing":      {[]string{"dev", "--data", dir, "--action-time", "fast"}, exitUsage, `"fast" is not a duration; use days`},
		"a negative number":        {[]string{"dev", "--data", dir, "--hosts", "-1"}, exitUsage, "--hosts: -1 is invalid; no flag takes a number below 0"},
		"tenant name":              {serve("--tenants", "ACME"), exitUsage, `tenants: "ACME" is not the name of a tenant; use 1 to 63 of a-z, 0-9 and "-"`},
		"tenant twice":             {serve("--tenants", "a,b,a"), exitUsage, `"a" is listed twice`},
		"site name":                {serve("--tenants", "a", "--site", "Mars 1"), exitUsage, `"Mars 1"`},
		"time zone":                {serve("--tenants", "a", "--timezone", "Europe/Stokholm"), exitUsage, "Europe/Stockholm"},
		"site-local site":          {serve("--tenants", "a", "--timezone", "site-local"), exitUsage, "IANA name"},
		"beyond loopback":          {serve("--tenants", "a", "--listen", "0.0.0.0:0"), exitFailed, "set tls-cert and tls-key, make a certificate with osupgrade-agent init, or listen on 127.0.0.1"},
		"log beyond loopback":      {serve("--tenants", "a", "--nats-listen", ":4222"), exitFailed, "set nats-tls-cert and nats-tls-key"},
		"certificate without key":  {serve("--tenants", "a", "--tls-cert", "c.pem"), exitFailed, "tls-cert and tls-key belong together"},
		"certificate missing":      {serve("--tenants", "a", "--tls-cert", dir+"/c", "--tls-key", dir+"/k"), exitFailed, "cannot load tls-cert"},
		"address":                  {serve("--tenants", "a", "--listen", "127.0.0.1:x"), exitUsage, "is not host:port"},
		"empty tenant":             {serve("--tenants", "a,,b"), exitUsage, `"" is not the name of a tenant`},
		"empty address":            {serve("--tenants", "a", "--listen", ""), exitUsage, "listen is empty"},
		"empty address of the log": {serve("--tenants", "a", "--nats-listen", ""), exitUsage, "nats-listen is empty"},
		"address of the log":       {serve("--tenants", "a", "--nats-listen", "foo"), exitUsage, `nats-listen "foo" is not host:port`},
		"key file missing":         {host("--key-file", dir+"/none"), exitFailed, "key-file"},
		"key file without a key":   {host("--key-file", file("key", "secret")), exitFailed, "holds no key"},
		"host name":                {[]string{"worker", "--application", "app", "--tenant", "acme", "--host", "h 1", "--scripts", dir, "--key-file", "x"}, exitUsage, `"h 1" is not a host name`},
		"action limit":             {host("--key-file", "x", "--action-limit=0s"), exitUsage, "above 0s"},
		"action limit below 0":     {host("--key-file", "x", "--action-limit=-1s"), exitUsage, "-1s is below 0s"},
		"label":                    {host("--key-file", "x", "--label", "foo"), exitUsage, `label: "foo" is invalid; use key=value`},
		"application":              {host("--key-file", "x", "--application", "A b"), exitUsage, `application: "A b" is not the name of an application`},
		"checks of a worker":       {host("--key-file", "x", "--checks", dir+"/none"), exitFailed, "checks: stat " + dir + "/none: no such file or directory"},
		"checks of a site":         {serve("--tenants", "a", "--checks", dir+"/none"), exitFailed, "checks: stat " + dir + "/none: no such file or directory"},
		"checks that are a file":   {serve("--tenants", "a", "--checks", file("checks", "")), exitFailed, "is not a folder"},
		"checks of everybody":      {serve("--tenants", "a", "--checks", open), exitFailed, "nobody but its owner should be able to write it"},
	})
}

// TestWrongConfigFile checks what is told of a config file.
func TestWrongConfigFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, serve, host := writeIn(t, dir), serveIn(dir), workerIn(dir)
	try(t, map[string]use{
		"config file missing":     {serve("--config", dir+"/none"), exitUsage, "none"},
		"config key unknown":      {serve("--config", file("k.yaml", "tenant: [a]\ntenantss: [a]\n")), exitUsage, "tenantss"},
		"config value nested":     {serve("--config", file("n.yaml", "tenants:\n  a: b\n")), exitUsage, "tenants: an object is not a list"},
		"config value a list":     {serve("--config", file("l.yaml", "tenants: [a]\nsite: [b]\n")), exitUsage, "site: a list is not text"},
		"config value null":       {serve("--config", file("0.yaml", "tenants: [a]\nsite:\n")), exitUsage, "site: null is not a value"},
		"config key twice":        {serve("--config", file("2.yaml", "tenants: [a]\nsite: b\nsite: c\n")), exitUsage, "2.yaml: site: the key is there twice"},
		"config of two documents": {serve("--config", file("d.yaml", "tenants: [a]\n---\ntenants: [b]\n")), exitUsage, "a second YAML document follows"},
		"config empty":            {serve("--config", file("e.yaml", "")), exitUsage, "e.yaml: the document is empty"},
		"config a folder":         {serve("--config", dir), exitUsage, "is a directory"},
		"config too large":        {serve("--config", file("b.yaml", strings.Repeat("#", maxConfig+1))), exitUsage, "larger than 1048576 bytes"},
		"key of a release":        {[]string{"worker", "--config", file("m.yaml", "apt-mode: security\n")}, exitUsage, "apt-mode: unknown key; what is installed is declared at the site, by a release: use its packages.select"},
		"version of an image":     {[]string{"worker", "--config", file("version.yaml", "strategy: rauc\nrauc-version: \"2.4\"\n")}, exitUsage, "rauc-version: unknown key; what is installed is declared at the site, by a release: use its version and images"},
		"branch of an image":      {[]string{"worker", "--config", file("ref.yaml", "ostree-ref: origin:stable\n")}, exitUsage, "ostree-ref: unknown key; what is installed is declared at the site, by a release: use its images, whose url may be a branch"},
		"config key of another":   {serve("--config", file("a.yaml", "tenants: [a]\nscripts: b\n")), exitUsage, "scripts: unknown key"},
		"config in a config":      {serve("--config", file("c.yaml", "tenants: [a]\nconfig: b\n")), exitUsage, "config: unknown key"},
		"config that prints":      {serve("--config", file("p.yaml", "tenants: [a]\nprint-config: true\n")), exitUsage, "print-config: unknown key"},
		"config that helps":       {serve("--config", file("h.yaml", "tenants: [a]\nhelp: true\n")), exitUsage, "help: unknown key"},
		"config not YAML":         {serve("--config", file("y.yaml", "tenants: [a\n")), exitUsage, "y.yaml: cannot read YAML"},
		"labels an object":        {host("--config", file("o.yaml", "key-file: x\nlabel: {ring: \"0\"}\n")), exitUsage, "label is a list of KEY=VALUE, such as label: [ring=0, rack=r12]"},
		"a label an object":       {host("--config", file("q.yaml", "key-file: x\nlabel: [{ring: \"0\"}]\n")), exitUsage, "label is a list of KEY=VALUE"},
	})
}

// TestOperatorWithoutToken checks what somebody sees who has not sourced
// anything, and that no token can be given where others read it.
func TestOperatorWithoutToken(t *testing.T) {
	t.Setenv("OSUPGRADE_TOKEN", "")
	for _, command := range []string{"status", "windows", "hosts", "start", "watch", "forget h01 --reason x"} {
		command := strings.Fields(command)
		code, _, stderr := call(t, append(command, "--tenant", "acme")...)
		if code != exitFailed || !strings.Contains(stderr, "set OSUPGRADE_TOKEN or --token-file") {
			t.Errorf("%s: exit code %d: %s", command, code, stderr)
		}
		if code, _, _ := call(t, append(command, "--tenant", "acme", "--token", "x")...); code != exitUsage {
			t.Errorf("%s takes a token as an argument", command)
		}
	}
}

// TestPrintConfig checks the order of flag, variable and file, with the
// example files.
func TestPrintConfig(t *testing.T) {
	t.Setenv("OSUPGRADE_SITE", "from-the-environment")
	code, stdout, stderr := call(t, "serve", "--config", "../../examples/agent/serve.yaml", "--listen", "127.0.0.1:1", "--print-config")
	for _, part := range []string{"site: from-the-environment", "timezone: Europe/Stockholm", "listen: 127.0.0.1:1", "- acme", "nats-listen: 0.0.0.0:4222"} {
		if code != exitOK || !strings.Contains(stdout, part) {
			t.Errorf("exit code %d, and no %q:\n%s%s", code, part, stdout, stderr)
		}
	}
	code, stdout, stderr = call(t, "worker", "--config", "../../examples/agent/worker.yaml", "--print-config")
	if code != exitOK || !strings.Contains(stdout, "nats-url: tls://site.example:4222") || !strings.Contains(stdout, "action-limit: 1h\n") || !strings.Contains(stdout, "- ring=0") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = call(t, "worker", "--config", "../../examples/agent/worker-apt.yaml", "--print-config")
	if code != exitOK || !strings.Contains(stdout, "apt-removals: refuse") || !strings.Contains(stdout, "- linux-image-*\n") || !strings.Contains(stdout, "apt-phased: exclude") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = call(t, "worker", "--config", "../../examples/agent/worker-dnf.yaml", "--print-config")
	if code != exitOK || !strings.Contains(stdout, "- kernel-*\n") || !strings.Contains(stdout, "dnf-lock-limit: 10m") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
}

// TestPrintedConfigWorks checks that what --print-config prints has the same
// effect as a config file, and that empty text in one is no value.
func TestPrintedConfigWorks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for command, text := range map[string]string{
		"serve":  "tenants: [a, b]\nlog-level: warn\nsite: ''\ntls-cert: \"\"\ndata: /d\n",
		"worker": "tenant: acme\napplication: app\nhost: ''\nnats-ca-file: ''\nkey-file: /k\nscripts: /s\nreboot-command: echo a, b\naction-limit: 1d\nreboot-limit: 1m30.5s\n",
	} {
		write(text)
		code, first, stderr := call(t, command, "--config", file, "--print-config")
		if code != exitOK || strings.Contains(first, "tls-cert") || strings.Contains(first, "nats-ca-file") || strings.Contains(first, "\nhost:") {
			t.Errorf("%s: exit code %d:\n%s%s", command, code, first, stderr)
		}
		write(first)
		if code, second, stderr := call(t, command, "--config", file, "--print-config"); code != exitOK || values(second) != values(first) {
			t.Errorf("%s: exit code %d, and what was printed is not printed again:\n%s%s", command, code, second, stderr)
		}
	}
}

// values is a printed config without where its values come from.
func values(config string) string {
	return regexp.MustCompile("# From: .*\n").ReplaceAllString(config, "")
}

// TestPrintConfigSaysWhere checks that each value is printed with where it comes
// from.
func TestPrintConfigSaysWhere(t *testing.T) {
	t.Setenv("OSUPGRADE_SITE", "here")
	t.Setenv("OSUPGRADE_TLS_CERT", "")
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("tenants: [a]\n\ntls-cert: /c\nsite: there\nlisten: 127.0.0.1:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := call(t, "serve", "--config", file, "--listen", "127.0.0.1:1", "--print-config")
	for _, part := range []string{
		"\n# From: default.\ndata: /var/lib/osupgrade\n", "\n# From: config file " + file + ", line 1.\ntenants:\n", "\n# From: variable OSUPGRADE_SITE.\nsite: here\n",
		"\n# From: flag --listen.\nlisten: 127.0.0.1:1\n", "\n# From: config file " + file + ", line 3.\ntls-cert: /c\n",
	} {
		if code != exitOK || !strings.Contains(stdout, part) {
			t.Errorf("exit code %d, and no %q:\n%s%s", code, part, stdout, stderr)
		}
	}
}

// TestEmptyPath checks that an empty variable or flag names no file, and never the
// folder that the program is in.
func TestEmptyPath(t *testing.T) {
	s := fakeapi.New(t)
	t.Setenv("OSUPGRADE_CA_CERT_FILE", "")
	t.Setenv("OSUPGRADE_TOKEN_FILE", "")
	t.Setenv("OSUPGRADE_TOKEN", s.Token)
	t.Setenv("OSUPGRADE_DATA", "")
	if code, stdout, stderr := call(t, "hosts", "--tenant", "acme", "--endpoint", s.URL); code != exitOK {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := call(t, "serve", "--tenants", "a", "--print-config"); code != exitOK || !strings.Contains(stdout, "# From: default.\ndata: /var/lib/osupgrade\n") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := call(t, "dev"); code != exitUsage || !strings.Contains(stderr, "missing flags: --data=DIR") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if code, _, stderr := call(t, "dev", "--data", ""); code != exitUsage || !strings.Contains(stderr, "--data: it is empty; give the path of a file or folder") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	t.Setenv("OSUPGRADE_KEY_FILE", "")
	config := writeIn(t, t.TempDir())("worker.yaml", "tenant: acme\nhost: h01\napplication: app\nkey-file: /srv/key\nscripts: /srv/scripts\n")
	if code, stdout, stderr := call(t, "worker", "--config", config, "--print-config"); code != exitOK || !strings.Contains(stdout, "key-file: /srv/key\n") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
}

// TestHelp checks that each command explains itself.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"", "dev", "serve", "worker", "worker run", "worker join", "init", "status", "windows", "hosts", "start", "watch", "forget", "credentials"} {
		code, stdout, _ := call(t, strings.Fields(command+" --help")...)
		if code != exitOK || !strings.Contains(stdout, "Usage: osupgrade-agent") {
			t.Errorf("%s --help: exit code %d:\n%s", command, code, stdout)
		}
	}
	for command, part := range map[string]string{"": "3 the run that the command waited for", "worker run": "one of worker-applications", "worker join": "never an argument", "runs": "The id of a run is its position in the log"} {
		_, stdout, _ := call(t, strings.Fields(command+" --help")...)
		if words := strings.Join(strings.Fields(stdout), " "); !strings.Contains(words, part) {
			t.Errorf("%s --help does not say %q:\n%s", command, part, stdout)
		}
	}
	_, stdout, _ := call(t, "--help")
	headings := regexp.MustCompile(`(?m)^[A-Z].*:$`).FindAllString(stdout, -1)
	if want := []string{"Flags:", "See what happens:", "Run upgrades:", "Declare the configuration:", "Let in people, programs and hosts:", "Site, on its server:", "Host, on this machine:", "Shell completion and man pages:"}; !slices.Equal(headings, want) {
		t.Errorf("the headings of --help are %q, not %q", headings, want)
	}
	// Without a command the program prints it, too, and still reports wrong usage.
	for _, command := range []string{"", "credentials", "credentials join-token"} {
		_, help, _ := call(t, strings.Fields(command+" --help")...)
		if code, stdout, stderr := call(t, strings.Fields(command)...); code != exitUsage || stdout != help || stderr != "" {
			t.Errorf("%q: exit code %d:\n%s%s", command, code, stdout, stderr)
		}
	}
	if code, stdout, _ := call(t, "--version"); code != exitOK || strings.TrimSpace(stdout) != "1.2.3" {
		t.Errorf("--version: exit code %d: %s", code, stdout)
	}
}

// TestOnlyCalled checks that a command is the same whether the parser knows only it or all
// commands.
func TestOnlyCalled(t *testing.T) {
	t.Parallel()
	commandsOf := func(args ...string) map[string]*kong.Node {
		parser, err := newParser(&commands{}, "1.2.3", onlyCalled(args))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]*kong.Node{}
		for _, n := range parser.Model.Children {
			found[n.Name] = n
		}
		return found
	}
	all := commandsOf()
	for name, whole := range all {
		alone := commandsOf(name, "--help")
		if slices.Contains(listers, name) {
			if len(alone) != len(all) {
				t.Errorf("%s lists %d of %d commands", name, len(alone), len(all))
			}
			continue
		}
		if len(alone) != 1 || alone[name] == nil {
			t.Errorf("the parser of %s knows %v", name, slices.Collect(maps.Keys(alone)))
			continue
		}
		if got, want := described(alone[name]), described(whole); got != want {
			t.Errorf("%s alone is another command:\n%s\nnot\n%s", name, got, want)
		}
	}
	for _, args := range [][]string{{"--log-level", "debug", "status"}, {"--version", "status"}, {"nonsense"}} {
		if got := commandsOf(args...); len(got) != len(all) {
			t.Errorf("%q: the parser knows %d of %d commands", args, len(got), len(all))
		}
	}
	if got := commandsOf("--version"); len(got) != 0 {
		t.Errorf("the parser of the version knows %d commands", len(got))
	}
}

// described returns what people see of a command and of those below it.
func described(n *kong.Node) string {
	var b strings.Builder
	for _, command := range shell.Commands(n) {
		fmt.Fprintf(&b, "%s: %s\n%s\n", command.FullPath(), command.Help, command.Detail)
		for _, flag := range shell.Flags(command) {
			fmt.Fprintf(&b, "  %s %s %v\n", flag, flagHelp(flag.Value), flag.Group)
		}
	}
	return b.String()
}
