package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// call runs the program in this process.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// TestWrongUse checks exit codes and that a person is told what would be
// right.
func TestWrongUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	serve := func(more ...string) []string { return append([]string{"serve", "--data", dir + "/site"}, more...) }
	host := func(more ...string) []string {
		return append([]string{"worker", "--application", "app", "--tenant", "acme", "--host", "h01", "--scripts", dir, "--state", dir + "/w"}, more...)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no command":               {nil, exitUsage, "expected one of"},
		"unknown command":          {[]string{"frob"}, exitUsage, "frob"},
		"unknown flag":             {[]string{"dev", "--hots", "3"}, exitUsage, "--hosts"},
		"flag without value":       {[]string{"dev", "--data"}, exitUsage, "--data"},
		"log level":                {[]string{"dev", "--data", dir, "--log-level", "loud"}, exitUsage, `"debug","info","warn","error"`},
		"too many hosts":           {[]string{"dev", "--data", dir, "--hosts", "100000"}, exitFailed, "use 0 to 10000"},
		"no tenant":                {[]string{"serve", "--data", dir}, exitUsage, "--tenants"},
		"tenant name":              {serve("--tenants", "ACME"), exitFailed, `"ACME" is not the name of a tenant`},
		"tenant twice":             {serve("--tenants", "a,b,a"), exitFailed, `"a" stands there twice`},
		"site name":                {serve("--tenants", "a", "--site", "Mars 1"), exitFailed, `"Mars 1"`},
		"time zone":                {serve("--tenants", "a", "--timezone", "Europe/Stokholm"), exitFailed, "Europe/Stockholm"},
		"site-local site":          {serve("--tenants", "a", "--timezone", "site-local"), exitFailed, "IANA name"},
		"beyond loopback":          {serve("--tenants", "a", "--listen", "0.0.0.0:0"), exitFailed, "set tls-cert and tls-key, or listen on 127.0.0.1"},
		"log beyond loopback":      {serve("--tenants", "a", "--nats-listen", ":4222"), exitFailed, "set nats-tls-cert and nats-tls-key"},
		"certificate without key":  {serve("--tenants", "a", "--tls-cert", "c.pem"), exitFailed, "tls-cert and tls-key belong together"},
		"certificate missing":      {serve("--tenants", "a", "--tls-cert", dir+"/c", "--tls-key", dir+"/k"), exitFailed, "cannot load tls-cert"},
		"address":                  {serve("--tenants", "a", "--listen", "127.0.0.1:x"), exitFailed, "is not host:port"},
		"no tenants":               {serve("--tenants", ""), exitFailed, "tenants is empty"},
		"empty tenant":             {serve("--tenants", "a,,b"), exitFailed, `"" is not the name of a tenant`},
		"empty address":            {serve("--tenants", "a", "--listen", ""), exitFailed, "listen is empty"},
		"empty address of the log": {serve("--tenants", "a", "--nats-listen", ""), exitFailed, "nats-listen is empty"},
		"address of the log":       {serve("--tenants", "a", "--nats-listen", "foo"), exitFailed, `nats-listen "foo" is not host:port`},
		"config file missing":      {serve("--config", dir+"/none"), exitUsage, "none"},
		"config key unknown":       {serve("--config", file("k.yaml", "tenant: [a]\ntenantss: [a]\n")), exitUsage, "tenantss"},
		"config value nested":      {serve("--config", file("n.yaml", "tenants:\n  a: b\n")), exitUsage, "tenants: an object is not a list"},
		"config value a list":      {serve("--config", file("l.yaml", "tenants: [a]\nsite: [b]\n")), exitUsage, "site: a list is not text"},
		"config value null":        {serve("--config", file("0.yaml", "tenants: [a]\nsite:\n")), exitUsage, "site: null is not a value"},
		"config key twice":         {serve("--config", file("2.yaml", "tenants: [a]\nsite: b\nsite: c\n")), exitUsage, "2.yaml: site: the key is there twice"},
		"config of two documents":  {serve("--config", file("d.yaml", "tenants: [a]\n---\ntenants: [b]\n")), exitUsage, "a second YAML document follows"},
		"config empty":             {serve("--config", file("e.yaml", "")), exitUsage, "e.yaml: the document is empty"},
		"config a folder":          {serve("--config", dir), exitUsage, "is a directory"},
		"config too large":         {serve("--config", file("b.yaml", strings.Repeat("#", maxConfig+1))), exitUsage, "larger than 1048576 bytes"},
		"config key of another":    {serve("--config", file("a.yaml", "tenants: [a]\nscripts: b\n")), exitUsage, "scripts: unknown key"},
		"config in a config":       {serve("--config", file("c.yaml", "tenants: [a]\nconfig: b\n")), exitUsage, "config: unknown key"},
		"config that prints":       {serve("--config", file("p.yaml", "tenants: [a]\nprint-config: true\n")), exitUsage, "print-config: unknown key"},
		"config that helps":        {serve("--config", file("h.yaml", "tenants: [a]\nhelp: true\n")), exitUsage, "help: unknown key"},
		"config without tenants":   {serve("--config", file("t.yaml", "tenants: []\n")), exitUsage, "--tenants"},
		"config not YAML":          {serve("--config", file("y.yaml", "tenants: [a\n")), exitUsage, "y.yaml: cannot read YAML"},
		"key file missing":         {host("--key-file", dir+"/none"), exitFailed, "key-file"},
		"key file without a key":   {host("--key-file", file("key", "secret")), exitFailed, "holds no key"},
		"host name":                {[]string{"worker", "--application", "app", "--tenant", "acme", "--host", "h 1", "--scripts", dir, "--key-file", "x"}, exitFailed, `"h 1" is not a host name`},
		"step limit":               {host("--key-file", "x", "--step-limit=-1s"), exitFailed, "above 0s"},
		"key for a strange host":   {[]string{"credentials", "host", "--data", dir, "--tenant", "acme", "--host", "a/b", "--out", dir + "/out1"}, exitFailed, `"a/b"`},
		"key over a file":          {[]string{"credentials", "host", "--data", dir, "--tenant", "acme", "--host", "h01", "--out", file("there", "")}, exitFailed, "exists"},
		"token without a name":     {[]string{"credentials", "token", "--data", dir, "--tenant", "acme", "--name", ""}, exitFailed, "use 1 to 63 printable characters"},
		"token for strange rights": {[]string{"credentials", "token", "--data", dir, "--tenant", "acme", "--name", "x", "--allow", "all"}, exitUsage, "write"},
	} {
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

// TestOperatorWithoutToken checks what somebody sees who has not sourced
// anything, and that no token can be given where others read it.
func TestOperatorWithoutToken(t *testing.T) {
	t.Setenv("OSUPGRADE_TOKEN", "")
	for _, command := range []string{"status", "windows", "hosts", "start", "watch", "forget h01"} {
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
	code, stdout, stderr := call(t, "serve", "--config", "../examples/agent/serve.yaml", "--listen", "127.0.0.1:1", "--print-config")
	for _, part := range []string{"site: from-the-environment", "timezone: Europe/Stockholm", "listen: 127.0.0.1:1", "- acme", "nats-listen: 0.0.0.0:4222"} {
		if code != exitOK || !strings.Contains(stdout, part) {
			t.Errorf("exit code %d, and no %q:\n%s%s", code, part, stdout, stderr)
		}
	}
	code, stdout, stderr = call(t, "worker", "--config", "../examples/agent/worker.yaml", "--print-config")
	if code != exitOK || !strings.Contains(stdout, "nats-url: tls://site.example:4222") || !strings.Contains(stdout, "step-limit: 1h0m0s") || !strings.Contains(stdout, "- ring=0") {
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
		"worker": "tenant: acme\napplication: app\nhost: ''\nnats-ca-file: ''\nkey-file: /k\nscripts: /s\nreboot-command: echo a, b\n",
	} {
		write(text)
		code, first, stderr := call(t, command, "--config", file, "--print-config")
		if code != exitOK || strings.Contains(first, "tls-cert") || strings.Contains(first, "nats-ca-file") || strings.Contains(first, "\nhost:") {
			t.Errorf("%s: exit code %d:\n%s%s", command, code, first, stderr)
		}
		write(first)
		if code, second, stderr := call(t, command, "--config", file, "--print-config"); code != exitOK || second != first {
			t.Errorf("%s: exit code %d, and what was printed is not printed again:\n%s%s", command, code, second, stderr)
		}
	}
}

// TestHelp checks that each command explains itself.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"", "dev", "serve", "worker", "status", "windows", "hosts", "start", "watch", "forget", "credentials"} {
		code, stdout, _ := call(t, strings.Fields(command+" --help")...)
		if code != exitOK || !strings.Contains(stdout, "Usage: osupgrade-agent") {
			t.Errorf("%s --help: exit code %d:\n%s", command, code, stdout)
		}
	}
	for command, part := range map[string]string{"": "3 the run that was waited for", "worker": "one of worker-applications"} {
		_, stdout, _ := call(t, strings.Fields(command+" --help")...)
		if words := strings.Join(strings.Fields(stdout), " "); !strings.Contains(words, part) {
			t.Errorf("%s --help does not say %q:\n%s", command, part, stdout)
		}
	}
	if code, stdout, _ := call(t, "--version"); code != exitOK || strings.TrimSpace(stdout) != version {
		t.Errorf("--version: exit code %d: %s", code, stdout)
	}
}

// TestHostKey checks that a key is only in its owner's file, and that a try
// that failed does not stand in the way of the next one.
func TestHostKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "key")
	args := []string{"credentials", "host", "--data", dir, "--tenant", "acme", "--out", out, "--host"}
	if code, _, _ := call(t, append(args, "a/b")...); code != exitFailed {
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
