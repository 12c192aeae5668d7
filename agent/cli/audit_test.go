//go:build !worker

package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
)

// TestAudit shows and exports the audit log of a real site, and the history of an object.
func TestAudit(t *testing.T) { //nolint:funlen // a story
	t.Parallel()
	dir := t.TempDir()
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Hosts: 0})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	viewer, err := d.Tokens.Add(principal.Token{Name: "eve", Tenant: d.Tenant, Allow: []string{access.Viewer}})
	if err != nil {
		t.Fatal(err)
	}
	run := func(token, want string, code int, args ...string) string {
		t.Helper()
		got, stdout, stderr := call(t, as(t, d.Endpoint, token, d.Tenant, args...)...)
		if got != code || !strings.Contains(stdout+stderr, want) {
			t.Errorf("%q: exit code %d:\n%s%s\nwant %d with %q", args, got, stdout, stderr, code, want)
		}
		return stdout
	}
	run(d.Token, "has no such record", exitOK, "audit")
	run(d.Token, "has no change of config", exitOK, "history", "config")
	for _, day := range []string{"Friday", "Saturday"} {
		file := filepath.Join(t.TempDir(), "intent.yaml")
		text := "config: {worker-applications: [{name: os-upgrade-simulated}], maintenance-windows: [{days-of-week: " + day + ", start-time: '01:00', timezone: UTC, duration: 4h}]}"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(d.Token, "Written", exitOK, "apply", "-f", file)
	}
	run(viewer, "403", exitFailed, "pause", "--reason", "lunch")

	table := run(d.Token, "", exitOK, "audit")
	for _, row := range []string{
		`SEQ  AT +WHO +FROM +ACTION  OBJECT  RESULT +MORE`,
		`1    \S+ \S+ \S+ CET  token dev  127\.0\.0\.1  write   config  done`,
		`2    \S+ \S+ \S+ CET  token dev  127\.0\.0\.1  write   config  done`,
		`3    \S+ \S+ \S+ CET  token eve  127\.0\.0\.1  pause   run     refused  token "eve" \(viewer\) does not have the right to execute this`,
	} {
		if !regexp.MustCompile(`(?m)^` + row).MatchString(table) {
			t.Errorf("the audit log is\n%s\nwithout %s", table, row)
		}
	}
	if got := run(d.Token, "token eve", exitOK, "audit", "--by", "eve"); strings.Contains(got, "token dev") {
		t.Errorf("of eve are\n%s", got)
	}
	run(d.Token, "has no such record", exitOK, "audit", "--object", "calendar")
	run(d.Token, `"request-id": `, exitOK, "audit", "--output", "json")
	run(viewer, "use a token with admin", exitFailed, "audit")

	// What is exported can be checked by whoever has it.
	previous := ""
	for line := range strings.Lines(run(d.Token, "", exitOK, "audit", "--after", "0", "--output", "jsonl")) {
		text, hash, _ := strings.Cut(strings.TrimSpace(line), `,"hash":"`)
		sum := sha256.Sum256([]byte(text + "}"))
		if got := hex.EncodeToString(sum[:]); got+`"}` != hash || previous != "" && !strings.Contains(text, `"previous":"`+previous+`"`) {
			t.Errorf("the hash of %s is %s", line, got)
		} else {
			previous = got
		}
	}
	messages := run(d.Token, "", exitOK, "audit", "--after", "1", "--output", "syslog")
	if lines := strings.Split(strings.TrimSpace(messages), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], "<109>1 ") || !strings.HasPrefix(lines[1], "<108>1 ") || !strings.Contains(lines[1], ` dev osupgrade - pause [osupgrade@32473 seq="3" `) {
		t.Errorf("the messages are\n%s", messages)
	}

	history := run(d.Token, "", exitOK, "history", "config", "--utc")
	for _, part := range []string{" UTC  config by token dev from 127.0.0.1:", ", new\n  + worker-applications:\n", "-2, was ", "\n  -     - days-of-week: Friday\n  +     - days-of-week: Saturday\n"} {
		if !strings.Contains(history, part) {
			t.Errorf("the history is\n%s\nwithout %q", history, part)
		}
	}
	code, _, stderr := call(t, "credentials", "user", "--data", dir, "--tenant", d.Tenant, "--name", "ann", "--allow", "viewer")
	if code != exitOK {
		t.Error(stderr)
	}
	run(d.Token, "  user/ann by machine "+me(t)+" from local: write, allows viewer\n", exitOK, "history", "user/ann")
	run(d.Token, `"diff": "  worker-applications:`, exitOK, "history", "config", "--limit", "1", "--output", "json")

	for _, wrong := range []struct {
		want string
		args []string
	}{
		{`"calendar" is no object that has a history; use config`, []string{"history", "calendar"}},
		{`"run/7" is no object that has a history`, []string{"history", "run/7"}},
		{"--limit: 0 is out of range; use 1 or more", []string{"history", "config", "--limit", "0"}},
		{"--limit: 1001 is out of range; use 1 to 1000", []string{"audit", "--limit", "1001"}},
		{"use jsonl", []string{"audit", "--follow", "--output", "json"}},
		{"--since: \"soon\" is not a time", []string{"audit", "--since", "soon"}},
		{"--until: ", []string{"audit", "--since", "2026-01-02", "--until", "2026-01-01"}},
	} {
		run(d.Token, wrong.want, exitUsage, wrong.args...)
	}

	// A record that somebody has changed is named, and the command fails.
	files, err := filepath.Glob(filepath.Join(dir, "audit", d.Tenant, "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the files are %v: %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], bytes.Replace(text, []byte("Saturday"), []byte("Sunday"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	run(d.Token, "the audit log is not as it was written: record 2 was changed (line 2 of ", exitFailed, "audit", "--after", "0")
	run(d.Token, "The audit log is not as it was written: record 2 was changed", exitOK, "history", "config")
}
