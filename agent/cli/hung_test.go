package cli

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/dev"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
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
	const aborting = `run \d+ is aborting until \S+Z at the latest \(h01 is checking\); to end it now: osupgrade-agent abort --now --reason …`
	types(exitOK, `Run \d+ has begun`, "start", "--override-window", "--reason", "CVE-2026-1")
	statusShows(t, d, "h01", "checking")
	types(exitFailed, `run \d+ is under way until \S+Z at the latest.*; to end it: osupgrade-agent abort --reason …`, "start", "--override-window", "--reason", "again")
	types(exitOK, `Run \d+ is paused`, "pause", "--reason", "a look")
	types(exitFailed, `paused by dev, until \S+Z at the latest; to have it proceed: osupgrade-agent resume --reason …; to end it: osupgrade-agent abort --reason …`, "start", "--override-window", "--reason", "again")
	types(exitFailed, `is paused already, by dev since \S+Z; to have it proceed: osupgrade-agent resume --reason …`, "pause", "--reason", "a look")
	types(exitOK, `proceeds`, "resume", "--reason", "it hangs")
	types(exitOK, `is aborting: .* by .* UTC at the latest. To end it now: osupgrade-agent abort --now --reason …`, "abort", "--reason", "h01 hangs", "--yes")
	for _, args := range [][]string{{"start", "--override-window"}, {"abort"}, {"pause"}, {"resume"}, {"approve", "all"}} {
		types(exitFailed, aborting, append(args, "--reason", "it hangs")...)
	}
	types(exitOK, `has ended as aborted by dev: h01 hangs; still out of service: h01 \(.*\). To free .*: osupgrade-agent release h01 --reason …`, "abort", "--now", "--reason", "h01 hangs", "--yes")
	types(exitFailed, `no run is under way: run \d+ ended at \S+Z as aborted; to start one: osupgrade-agent start --override-window --reason …`, "abort", "--now", "--reason", "h01 hangs")
	types(exitOK, `h01 .*; out of service since .*: it failed and is still unhealthy`, "status")
	types(exitOK, `The slot of host h01 is free`, "release", "h01", "--reason", "looked at it")
	types(exitFailed, `host h01 holds no slot since run \d+.*nothing to release`, "release", "h01", "--reason", "looked at it")
	// A host that a run has in hand is released too.
	types(exitOK, `Run \d+ has begun`, "start", "--override-window", "--reason", "CVE-2026-1")
	statusShows(t, d, "h01", "checking")
	types(exitOK, `The slot of h01 is free; run \d+ neither waits for h01 nor touches it`, "release", "h01", "--reason", "scrapped", "--yes")
	statusShows(t, d, "h02", "checking")
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
