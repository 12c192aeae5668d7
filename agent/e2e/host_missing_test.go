package e2e

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// missingGuide is the guide "My host does not appear", and what lives through it.
type missingGuide struct {
	*joinFleet
	text string
}

// quotes checks that the guide quotes a text, and that this is what was printed. An ellipsis
// is what differs from one host to the next.
func (g *missingGuide) quotes(quoted, printed string) {
	g.t.Helper()
	if !strings.Contains(g.text, quoted) {
		g.t.Errorf("the guide does not quote %q", quoted)
	}
	if !printsAll(quoted, printed) {
		g.t.Errorf("%q is not what is printed:\n%s", quoted, printed)
	}
}

func printsAll(quoted, printed string) bool {
	for part := range strings.SplitSeq(quoted, "…") {
		if !strings.Contains(printed, strings.TrimSpace(part)) {
			return false
		}
	}
	return true
}

func (g *missingGuide) joinFails(quoted, endpoint, token, host, config string) {
	g.t.Helper()
	out, code := g.join(endpoint, token, host, config)
	if code == 0 {
		g.t.Errorf("the join of %s succeeds", host)
	}
	g.quotes(quoted, out)
}

// workerLogs runs a worker until its log has all that the guide quotes of it.
func (g *missingGuide) workerLogs(name string, change *strings.Replacer, quoted ...string) {
	g.t.Helper()
	config := g.path(name + ".yaml")
	if err := os.WriteFile(config, []byte(change.Replace(read(g.t, g.config))), 0o600); err != nil {
		g.t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(g.t.Context(), patience)
	defer stop()
	log, err := os.Create(g.path(name + ".log"))
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	worker := exec.CommandContext(ctx, g.bin, "worker", "--config", config, "--state", g.path(name), "--scripts", g.path("h01", "scripts"), "--boot-id-file", g.path("h01", "boot-id")) //nolint:gosec // our own binary
	worker.Stdout, worker.Stderr = log, log
	if err := worker.Start(); err != nil {
		g.t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = worker.Wait()
		close(exited)
	}()
	logged := func() bool {
		printed := read(g.t, log.Name())
		return !slices.ContainsFunc(quoted, func(text string) bool { return !printsAll(text, printed) })
	}
	for ended := false; !ended && !logged(); {
		select {
		case <-exited:
			ended = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	stop()
	<-exited
	for _, text := range quoted {
		g.quotes(text, read(g.t, log.Name()))
	}
}

// TestHostMissingGuide makes what the guide "My host does not appear" helps with: each text
// that it quotes is what the commands, the worker and the site print.
func TestHostMissingGuide(t *testing.T) {
	t.Parallel()
	g := &missingGuide{newJoinFleet(t), read(t, "../../docs/guides/host-missing.md")}
	hosts := func() string {
		token := g.command("credentials", "token", "--data", g.site, "--tenant", "acme", "--name", "me")
		file := g.path("token")
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return g.command("hosts", "--endpoint", g.endpoint, "--tenant", "acme", "--token-file", file, "--ca-file", g.site+"/tls/ca.pem")
	}
	g.quotes("No host to show.", hosts())

	token := g.joinToken(g.site, "--host", "h01")
	g.joinFails("cannot reach the site: … connection refused", "https://localhost:1", token, "h01", g.config)
	g.joinFails("endpoint … is not https", strings.Replace(g.endpoint, "https", "http", 1), token, "h01", g.config)
	g.joinFails(`the join token is not for this host: it is for "h01", and this is "h02"`, g.endpoint, token, "h02", g.config)
	if out, code := g.join(g.endpoint, token, "h01", g.config); code != 0 {
		t.Fatalf("the host does not join: %s", out)
	}
	g.joinFails("the join token was used already, by another key or host", g.endpoint, token, "h01", g.path("thief", "worker.yaml"))
	g.joinFails("the key is refused: host h01 of tenant acme has a key already", g.endpoint, g.joinToken(g.site, "--host", "h01"), "h01", g.path("new", "worker.yaml"))

	other := g.path("other")
	g.command("init", "--data", other, "--name", "localhost")
	g.joinFails("the site has another authority than the join token says", g.endpoint, g.joinToken(other, "--new-site", "--host", "h01"), "h01", g.config)

	g.workerLogs("no-key", strings.NewReplacer("host.key", "none.key"), ".key: no such file or directory")
	g.workerLogs("wrong-authority", strings.NewReplacer("nats-ca-file: ", "nats-ca-file: "+other+"/tls/ca.pem # "), "cannot connect to the log, retrying", "certificate signed by unknown authority")
	g.workerLogs("nobody", strings.NewReplacer("nats-url: tls://localhost:", "nats-url: tls://localhost:1 # "), "no servers available for connection")
	g.workerLogs("other-host", strings.NewReplacer("host: h01", "host: h07"), "the site does not permit this; is the key that of another host or tenant?")
	g.quotes("says that it is this host, and has the key of host h01 of tenant acme: give it the key of its own", hosts())
	g.workerLogs("right", strings.NewReplacer(), "connected to the log", "Host h01 of tenant acme is ready.")
	g.command(append([]string{"credentials", "remove", "--data", g.site}, g.listed()...)...)
	g.workerLogs("removed", strings.NewReplacer(), "the site does not know the key in … for host h01")
	g.quotes("no host has its key", hosts())
}
