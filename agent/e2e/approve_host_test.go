package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// waitingWorker starts the worker of h01, which prints nothing before it has the lease.
func (f *joinFleet) waitingWorker() {
	f.t.Helper()
	log, err := os.Create(f.path("worker-h01.log"))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = log.Close() })
	worker := exec.CommandContext(context.WithoutCancel(f.t.Context()), f.bin, "worker", "--config", f.config, "--boot-id-file", f.path("h01", "boot-id")) //nolint:gosec // our own binary
	worker.Stdout, worker.Stderr = log, log
	if err := worker.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = worker.Process.Kill()
		_ = worker.Wait()
	})
}

// TestApproveHost lets hosts join with one token that wants a person to approve each: the worker
// waits, says so once, and connects when its host is approved. Another is refused. Then the token
// is removed, as if it had leaked.
func TestApproveHost(t *testing.T) {
	t.Parallel()
	f := newJoinFleet(t)
	token := f.joinToken(f.site, "--host", "h0*", "--max-hosts", "3", "--approve", "--label", "shop=basel")
	if err := os.MkdirAll(filepath.Dir(f.config), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := "scripts: " + f.path("h01", "scripts") + "\nstate: " + f.path("h01", "state") + "\nlabel: [shop=bern, rack=r1]\n"
	if err := os.WriteFile(f.config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	key := regexp.MustCompile(`\bU[A-Z2-7]{55}\b`)
	out, code := f.join(f.endpoint, token, "h01", f.config)
	if code != 0 || !strings.Contains(out, "Host h01 waits for approval to join tenant acme as appliance") || !key.MatchString(out) {
		t.Fatalf("the join ends with %d: %s", code, out)
	}
	own := key.FindString(out)
	if out, code := f.join(f.endpoint, token, "h02", f.path("h02", "worker.yaml")); code != 0 {
		t.Fatalf("the join of h02 ends with %d: %s", code, out)
	}
	f.waitingWorker()
	const unknown = "approve the host there with osupgrade-agent approve-host if it waits for that"
	f.awaitLog("worker-h01", unknown)
	f.awaitLog("serve", "connection refused: its host waits for approval")

	admin := f.path("admin.token")
	if err := os.WriteFile(admin, []byte(f.command("credentials", "token", "--data", f.site, "--tenant", "acme", "--name", "test", "--allow", "admin")), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := func(args ...string) string {
		t.Helper()
		return f.command(append(args, "--endpoint", f.endpoint, "--ca-file", filepath.Join(f.site, "tls", "ca.pem"), "--tenant", "acme", "--token-file", admin)...)
	}
	if status := asked("status"); !strings.Contains(status, "2 hosts wait for approval: h01 (from 127.0.0.1), h02 (from 127.0.0.1)") || !strings.Contains(status, "approve-host h01") {
		t.Errorf("status says\n%s", status)
	}
	if waiting := asked("hosts", "--waiting"); !strings.Contains(waiting, own) || strings.Count(waiting, "shop=basel") != 2 {
		t.Errorf("there wait\n%s", waiting)
	}
	if out := f.command("refuse-host", "h02", "--data", f.site, "--tenant", "acme"); !strings.Contains(out, "Host h02 (from 127.0.0.1, key U") {
		t.Errorf("the refusal says %s", out)
	}
	f.refused("a person has refused this host", 1, f.endpoint, token, "h02", f.path("h02", "worker.yaml"))
	if out := f.command("approve-host", "h01", "--key", own, "--data", f.site, "--tenant", "acme"); !strings.Contains(out, "is approved") {
		t.Errorf("the approval says %s", out)
	}
	f.awaitLog("worker-h01", "connected to the log")
	if log := read(t, f.path("worker-h01.log")); strings.Count(log, unknown) != 1 {
		t.Errorf("while it waits the worker says\n%s", log)
	}
	if out, code := f.join(f.endpoint, token, "h01", f.config); code != 0 || !strings.Contains(out, "has joined tenant acme") {
		t.Errorf("the approved host joins again with %d: %s", code, out)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		hosts := asked("hosts", "--wide")
		if strings.Contains(hosts, "rack=r1, shop=basel") || strings.Contains(hosts, "rack=r1,shop=basel") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("h01 does not have the labels of its token:\n%s", hosts)
		}
	}

	id := strings.Fields(strings.Split(f.command("credentials", "join-token", "list", "--data", f.site), "\n")[1])[0]
	shown := f.command("credentials", "join-token", "show", id, "--data", f.site)
	if !strings.Contains(shown, "host h0*, 2 of 3") || !regexp.MustCompile(`h01 +joined`).MatchString(shown) || !regexp.MustCompile(`h02 +refused`).MatchString(shown) {
		t.Errorf("the token is shown as\n%s", shown)
	}
	if out := f.command("credentials", "join-token", "remove", id, "--data", f.site); !strings.Contains(out, own) || !strings.Contains(out, "Those that joined stay") {
		t.Errorf("the removal says\n%s", out)
	}
	f.refused("is unknown", 1, f.endpoint, token, "h03", f.path("h03", "worker.yaml"))
}
