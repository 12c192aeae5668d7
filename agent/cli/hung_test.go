package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestHungHost plays an operator at night whose run waits for a host that does not get
// healthy. Each answer of the real agent tells until when that lasts and what to type;
// the operator types that.
func TestHungHost(t *testing.T) {
	t.Parallel()
	d, err := dev.Start(t.Context(), dev.Options{Dir: t.TempDir(), Hosts: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	configure(t, d.Endpoint, d.Token)
	hangs := v1.Rollout{Checks: &v1.RolloutChecks{AfterHost: []v1.Check{{Type: "tcp", Address: "127.0.0.1:1", Timeout: "1h"}}}}
	setRollout(t, d, hangs)
	types := func(code int, want string, args ...string) {
		t.Helper()
		got, stdout, stderr := call(t, as(t, d.Endpoint, d.Token, d.Tenant, args...)...)
		if got != code || !regexp.MustCompile(want).MatchString(stdout+stderr) {
			t.Fatalf("%s: exit code %d, and no word of %s:\n%s%s", strings.Join(args, " "), got, want, stdout, stderr)
		}
	}
	const aborting = `run \d+ is aborting until \S+ \S+ \S+ CET at the latest \(h01 is checking\); to end it now: osupgrade-agent abort --now --reason …`
	types(exitOK, `Run \d+ has begun`, "start", "--override-window", "--reason", "CVE-2026-1")
	statusShows(t, d, "h01", "checking")
	types(exitFailed, `run \d+ is in progress until \S+ \S+ \S+ CET at the latest.*; to end it: osupgrade-agent abort --reason …`, "start", "--override-window", "--reason", "again")
	types(exitOK, `Run \d+ is paused`, "pause", "--reason", "a look")
	types(exitFailed, `paused by dev, until \S+ \S+ \S+ CET at the latest; to have it proceed: osupgrade-agent resume --reason …; to end it: osupgrade-agent abort --reason …`, "start", "--override-window", "--reason", "again")
	types(exitFailed, `is paused already, by dev since \S+ \S+ \S+ CET; to have it proceed: osupgrade-agent resume --reason …`, "pause", "--reason", "a look")
	types(exitOK, `continues`, "resume", "--reason", "it hangs")
	types(exitOK, `is aborting: .* by .* CET at the latest. To end it now: osupgrade-agent abort --now --reason …`, "abort", "--reason", "h01 hangs", "--yes")
	for _, args := range [][]string{{"start", "--override-window"}, {"abort"}, {"pause"}, {"resume"}, {"approve", "all"}} {
		types(exitFailed, aborting, append(args, "--reason", "it hangs")...)
	}
	types(exitOK, `has ended as aborted by dev: h01 hangs; still out of service: h01 \(.*\). To stop waiting .*: osupgrade-agent release h01 --reason …`, "abort", "--now", "--reason", "h01 hangs", "--yes")
	types(exitFailed, `no run is in progress: run \d+ ended at \S+Z as aborted; to start one: osupgrade-agent start --override-window --reason …`, "abort", "--now", "--reason", "h01 hangs")
	types(exitOK, `h01 .*; out of service since .*: it failed and is still unhealthy`, "status")
	types(exitOK, `The slot of host h01 is free`, "release", "h01", "--reason", "looked at it")
	types(exitFailed, `host h01 holds no slot since run \d+.*nothing to release`, "release", "h01", "--reason", "looked at it")
	// A host that a run has in hand is released too.
	types(exitOK, `Run \d+ has begun`, "start", "--override-window", "--reason", "CVE-2026-1")
	statusShows(t, d, "h01", "checking")
	types(exitOK, `Host h01 is released: run \d+ neither waits for it nor touches it`, "release", "h01", "--reason", "scrapped", "--yes")
	statusShows(t, d, "h02", "checking")
}

// TestHungPrepare plays an operator one of whose three hosts hangs in its prepare: the others
// are upgraded without him, the host is left out, and he can release it while it hangs.
func TestHungPrepare(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host := filepath.Join(dir, "hosts", "h02")
	if err := os.MkdirAll(host, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(host, "faults.json"), []byte(`{"prepare":"hang"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Hosts: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	configure(t, d.Endpoint, d.Token)
	types := func(want string, args ...string) {
		t.Helper()
		_, stdout, stderr := call(t, as(t, d.Endpoint, d.Token, d.Tenant, args...)...)
		if !regexp.MustCompile(want).MatchString(stdout + stderr) {
			t.Fatalf("%s: no word of %s:\n%s%s", strings.Join(args, " "), want, stdout, stderr)
		}
	}
	setRollout(t, d, v1.Rollout{PreparePatience: "1s"})
	types(`partial: 2 of 3 hosts upgraded; left out: h02`, "start", "--override-window", "--duration", "2m", "--reason", "CVE-2026-1", "--wait")
	types(`h02 +all +skipped +.* it did not prepare in time`, "status")
	setRollout(t, d, v1.Rollout{MinPrepared: "100%"})
	types(`Run \d+ has begun`, "start", "--override-window", "--reason", "CVE-2026-2")
	types(`Host h02 is not upgraded yet. Releasing it makes run \d+ give it up`, "release", "h02", "--reason", "it hangs")
	types(`Host h02 is released: run \d+ neither waits for it nor touches it`, "release", "h02", "--reason", "it hangs", "--yes")
	statusShows(t, d, "h02", "skipped")
}

// setRollout writes the tenant's rollout.
func setRollout(t *testing.T, d *dev.Dev, r v1.Rollout) {
	t.Helper()
	api, err := client.New(client.Options{Endpoint: d.Endpoint, Token: d.Token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	if _, err := api.PutRollout(t.Context(), d.Tenant, r, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
}

// statusShows waits until status shows a host as the run has it.
func statusShows(t *testing.T, d *dev.Dev, host, status string) {
	t.Helper()
	want := regexp.MustCompile(`(?m)^` + host + ` +\S+ +` + status)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, stdout, stderr := call(t, as(t, d.Endpoint, d.Token, d.Tenant, "status")...)
		if want.MatchString(stdout) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s is not shown as %s:\n%s%s", host, status, stdout, stderr)
		}
	}
}
