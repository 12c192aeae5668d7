package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// try runs a command of the agent and returns what it printed and how it ended.
func (f *fleet) try(stdin string, args ...string) (out string, code int) {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), f.bin, args...) //nolint:gosec // our own binary
	cmd.Stdin = strings.NewReader(stdin)
	text, _ := cmd.CombinedOutput()
	return string(text), cmd.ProcessState.ExitCode()
}

// joinFleet is a site with an authority of its own, and the machines that join it.
type joinFleet struct {
	*fleet
	site string
	// endpoint is the site's address, config the configuration of h01.
	endpoint, config string
}

func newJoinFleet(t *testing.T) *joinFleet {
	t.Helper()
	f := &joinFleet{fleet: newProgram(t)}
	f.record()
	f.site, f.config = f.path("site"), f.path("h01", "etc", "worker.yaml")
	f.command("init", "--data", f.site, "--name", "localhost")
	var line string
	f.fleet.site, line = f.launch("serve", "serve", "--data", f.site, "--tenants", "acme", "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0")
	found := addresses.FindStringSubmatch(line)
	f.endpoint = "https://" + strings.Replace(found[1], "127.0.0.1", "localhost", 1)
	f.writeHost("h01")
	return f
}

// joinToken makes a join token and returns its file.
func (f *joinFleet) joinToken(site string, more ...string) (file string) {
	f.t.Helper()
	text := f.command(append([]string{"credentials", "join-token", "create", "--data", site, "--tenant", "acme", "--application", "appliance"}, more...)...)
	file = filepath.Join(f.t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return file
}

// join lets a host join, and returns what the command prints and how it ends.
func (f *joinFleet) join(endpoint, token, host, config string) (out string, code int) {
	f.t.Helper()
	return f.try("", "worker", "join", "--site", endpoint, "--token-file", token, "--host", host, "--config", config)
}

func (f *joinFleet) refused(want string, code int, endpoint, token, host, config string) {
	f.t.Helper()
	if out, got := f.join(endpoint, token, host, config); got != code || !strings.Contains(out, want) {
		f.t.Errorf("the join of %s at %s ends with %d and not with %d and %q: %s", host, endpoint, got, code, want, out)
	}
}

func (f *joinFleet) worker() *process {
	f.t.Helper()
	p, _ := f.launch("worker-h01", "worker", "--config", f.config, "--boot-id-file", f.path("h01", "boot-id"))
	return p
}

// listed returns the lines of the host's keys.
func (f *joinFleet) listed() (lines []string) {
	f.t.Helper()
	for line := range strings.Lines(f.command("credentials", "list", "--data", f.site)) {
		if strings.Contains(line, " h01 ") {
			lines = append(lines, strings.Fields(line)[0])
		}
	}
	return lines
}

// TestJoinRefused tries to join in all the wrong ways. None uses up the token.
func TestJoinRefused(t *testing.T) {
	t.Parallel()
	f := newJoinFleet(t)
	token := f.joinToken(f.site, "--host", "h0*")
	f.refused("is not for this host", 1, f.endpoint, token, "web", f.path("web", "worker.yaml"))
	f.refused("in plain text; use https://site.example", 2, "http://site.example", token, "h01", f.config)
	f.refused("is not an address", 2, "localhost", token, "h01", f.config)
	f.refused("is not a host name", 2, f.endpoint, token, "a/b", f.config)
	f.refused("is not a join token", 1, f.endpoint, f.path("h01", "version"), "h01", f.config)
	other := filepath.Join(t.TempDir(), "site")
	f.command("init", "--data", other, "--name", "localhost")
	foreign := f.joinToken(other, "--new-site", "--host", "h01")
	f.refused("somebody else answers in its place", 1, f.endpoint, foreign, "h01", f.config)
	if err := os.Chmod(foreign, 0o644); err != nil { //nolint:gosec // that is refused
		t.Fatal(err)
	}
	f.refused("open to other users", 1, f.endpoint, foreign, "h01", f.config)
	if out, code := f.join(f.endpoint, token, "h01", f.config); code != 0 {
		t.Errorf("after all of that the host does not join: %s", out)
	}
}

// TestJoin brings a host to a site as the guide says. On the way come a lost answer, a
// second joiner and a second key; then the key is rotated, replaced and withdrawn.
func TestJoin(t *testing.T) {
	t.Parallel()
	f := newJoinFleet(t)
	first := f.joinToken(f.site, "--host", "h0*")
	if err := os.MkdirAll(filepath.Dir(f.config), 0o700); err != nil {
		t.Fatal(err)
	}
	// What somebody wrote into the configuration stays.
	if err := os.WriteFile(f.config, []byte("# ours\nscripts: "+f.path("h01", "scripts")+"\nhost: other\nstate: "+f.path("h01", "state")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // The answer may be lost.
		if out, code := f.join(f.endpoint, first, "h01", f.config); code != 0 || !strings.Contains(out, "has joined tenant acme as appliance") || !strings.Contains(out, "systemctl enable --now osupgrade-worker") {
			t.Errorf("the join ends with %d: %s", code, out)
		}
	}
	f.refused("was used already", 1, f.endpoint, first, "h01", f.path("thief", "worker.yaml"))
	if text := read(t, f.config); !strings.HasPrefix(text, "# ours\nscripts: ") || strings.Count(text, "\nhost:") != 1 || !strings.Contains(text, "\nhost: h01\n") {
		t.Errorf("its configuration is\n%s", text)
	}
	if info, err := os.Stat(f.path("h01", "etc", "host.key")); err != nil || info.Mode() != 0o600 {
		t.Errorf("its key: %v, %v", info, err)
	}
	f.workers["h01"] = f.worker()

	// A second key of the host, from another machine.
	second := f.joinToken(f.site, "--host", "h01")
	f.refused("has a key already", 1, f.endpoint, second, "h01", f.path("new", "worker.yaml"))
	before := f.listed()
	if len(before) != 1 {
		t.Errorf("after it is refused the host has the keys %v", before)
	}

	// Rotation: the worker has its key until it is started with the next.
	f.command("worker", "rotate-key", "--config", f.config)
	if got := f.listed(); len(got) != 2 {
		t.Errorf("while the key is rotated the host has the keys %v", got)
	}
	time.Sleep(time.Second)
	if log := read(t, f.path("serve.log")); strings.Contains(log, "connection ended") {
		t.Errorf("the worker is cut off while its key is rotated:\n%s", log)
	}
	f.endsInOrder("worker", f.workers["h01"])
	f.workers["h01"] = f.worker()
	if got := f.listed(); len(got) != 1 || got[0] == before[0] {
		t.Errorf("after the rotation the host has the keys %v, before it %v", got, before)
	}

	// A machine that replaces the host, and the withdrawal of the host.
	third := f.joinToken(f.site, "--host", "h01", "--replace")
	if out, code := f.join(f.endpoint, third, "h01", f.path("new", "worker.yaml")); code != 0 {
		t.Errorf("the new machine does not join: %s", out)
	}
	f.awaitLog("serve", "connection ended: its key was removed")
	f.command(append([]string{"credentials", "remove", "--data", f.site}, f.listed()...)...)
	f.refused("is unknown", 1, f.endpoint, third, "h01", f.path("new", "worker.yaml"))
	said := read(t, f.path("serve.log")) + f.command("credentials", "join-token", "list", "--data", f.site)
	for _, token := range []string{first, second, third} {
		if strings.Contains(said, read(t, token)[:20]) {
			t.Error("a secret is in the log or in the list")
		}
	}
}
