package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLabelsFollowTheMachine checks that the site knows the labels which programs of a host write into
// the folder next to the worker's configuration, within seconds and without a restart, and that a wrong
// line leaves the others in force.
func TestLabelsFollowTheMachine(t *testing.T) {
	t.Parallel()
	f := newJoinFleet(t)
	settings := "scripts: " + f.path("h01", "scripts") + "\nstate: " + f.path("h01", "state") + "\nlabel: [ring=0]\n"
	if err := errors.Join(os.MkdirAll(filepath.Dir(f.config), 0o700), os.WriteFile(f.config, []byte(settings), 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, code := f.join(f.endpoint, f.joinToken(f.site, "--host", "h01"), "h01", f.config); code != 0 {
		t.Fatalf("the join ends with %d: %s", code, out)
	}
	admin := f.path("admin")
	if err := os.WriteFile(admin, []byte(f.command("credentials", "token", "--data", f.site, "--tenant", "acme", "--name", "test", "--allow", "admin")), 0o600); err != nil {
		t.Fatal(err)
	}
	f.workers["h01"] = f.worker()
	shows := func(want string) {
		t.Helper()
		var shown string
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			if shown = f.command("hosts", "h01", "--endpoint", f.endpoint, "--ca-file", filepath.Join(f.site, "tls", "ca.pem"), "--tenant", "acme", "--token-file", admin); strings.Contains(shown, want+"\n") {
				return
			}
		}
		t.Fatalf("the host does not have the labels %s:\n%s", want, shown)
	}
	dir := filepath.Join(filepath.Dir(f.config), "labels.d")
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "active"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	shows("ring=0")
	write("active=true\n")
	shows("active=true, ring=0")
	write("active=false\nring=1\nno label\nrack=r1\n")
	shows("active=false, rack=r1, ring=0")
	f.awaitLog("worker-h01", `line 2 of file active does not count: label ring is \"0\" by the worker's --label, which wins; remove one of them`)
	f.awaitLog("worker-h01", `line 3 of file active does not count: \"no label\" is invalid; use KEY=VALUE`)
	f.endsInOrder("worker", f.workers["h01"])
	write("active=true\n")
	f.workers["h01"] = f.worker()
	shows("active=true, ring=0")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	shows("ring=0")
}
