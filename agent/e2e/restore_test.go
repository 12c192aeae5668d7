package e2e

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestPutBack puts an older copy of a site in place of it while a run is under way: the
// folder itself, or a backup that was made while the site ran. What two hosts did since
// is lost to the site: one is done, the other in the middle of it. The site finds out, no
// host upgrades twice, none is ignored, no two are upgraded at once, and no number of a run
// is given out twice.
func TestPutBack(t *testing.T) {
	t.Parallel()
	for name, backup := range map[string]bool{"a copy of the folder": false, "a backup": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			putBack(t, backup)
		})
	}
}

func putBack(t *testing.T, backup bool) {
	t.Helper()
	f := newFleet(t)
	api, site, old := f.client(), f.path("site"), f.path("old")
	if _, err := api.PutConfig(t.Context(), "acme", v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "appliance"}}}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	f.gather(api, 3)
	run, err := api.Start(t.Context(), "acme", v1.Start{OverrideWindow: true, Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	f.await("h01 upgrade begins")
	if backup {
		f.command("backup", "--data", site, "--out", old)
	} else {
		f.site.kill()
		f.copyFolder(site, old)
		f.startSite()
	}
	f.release("h01")
	f.await("h02 upgrade begins")
	f.site.kill()
	if err := os.Rename(site, f.path("lost")); err != nil {
		t.Fatal(err)
	}
	if backup {
		f.command("restore", old, "--data", site)
	} else {
		f.copyFolder(old, site)
		f.startSite()
		f.foundOut(api)
		f.site.kill()
		if said := f.command("recover", "--data", site); !strings.Contains(said, "Run numbers continue at") {
			t.Errorf("recover says %s", said)
		}
	}
	f.startSite()
	f.heldUp(api, run.ID)
	f.release("h02")
	f.await("h03 upgrade begins")
	f.release("h03")
	f.await("h03 reboot begins")
	f.stop("h03")
	if err := os.WriteFile(f.path("h03", "off"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.await("h03 reboots")
	f.workers["h03"] = f.startWorker("h03")
	ended := f.finished(api, run.ID)
	if ended.Result != "completed" {
		t.Fatalf("the run ended as %s: %s: %+v", ended.Result, ended.Reason, ended.Hosts)
	}
	for _, what := range []string{"h01 upgrade begins", "h02 upgrade begins", "h03 upgrade begins", "h03 reboots"} {
		if n := f.count(what); n != 1 {
			t.Errorf("%s: %d times", what, n)
		}
	}
	f.next(api, ended)
}

// heldUp waits until the run says that h02 is at work on a command that was lost, and
// checks that no other host has begun.
func (f *fleet) heldUp(api *client.Client, id uint64) {
	f.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		run, err := api.Run(f.t.Context(), "acme", id)
		if err != nil {
			f.t.Fatal(err)
		}
		if strings.Contains(run.Paused, "from before the site was restored: h02") {
			break
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the run is not held up: %+v", run)
		}
	}
	if n := f.count("h03 upgrade begins"); n != 0 {
		f.t.Error("two hosts are upgraded at once")
	}
}

// foundOut waits until a site says that its hosts know more than its log.
func (f *fleet) foundOut(api *client.Client) {
	f.t.Helper()
	told := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get("http://" + f.api + "/readyz") //nolint:noctx // a test
		if err != nil {
			f.t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if told = string(body); err == nil && answer.StatusCode == http.StatusServiceUnavailable && strings.Contains(told, "host h01 ") && strings.Contains(told, "host h02 knows") {
			break
		}
		_ = answer.Body.Close()
	}
	for _, part := range []string{"the log is not the one that its hosts know, but an older copy", "host h01 ", "host h02 knows", "osupgrade-agent recover", "the controller of tenant acme is not ready: "} {
		if !strings.Contains(told, part) {
			f.t.Fatalf("/readyz says %s, and not %q", told, part)
		}
	}
	if answer, err := http.Get("http://" + f.api + "/healthz"); err != nil || answer.StatusCode != http.StatusOK { //nolint:noctx,bodyclose // a test
		f.t.Errorf("/healthz says %+v, %v: the process works", answer, err)
	}
	if _, err := api.Start(f.t.Context(), "acme", v1.Start{OverrideWindow: true, Reason: "a test"}); err == nil {
		f.t.Error("a run was started")
	}
	cmd := exec.CommandContext(f.t.Context(), f.bin, "status", "--endpoint", "http://"+f.api, "--tenant", "acme") //nolint:gosec // our own binary
	cmd.Env = append(os.Environ(), "OSUPGRADE_TOKEN="+f.token)
	status, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(status), "host h01 ") {
		f.t.Errorf("status says %s, %v", status, err)
	}
}

// next starts another run: its number is a new one, and every host takes part in it.
func (f *fleet) next(api *client.Client, before v1.Run) {
	f.t.Helper()
	run, err := api.Start(f.t.Context(), "acme", v1.Start{OverrideWindow: true, Reason: "a test"})
	if err != nil {
		f.t.Fatal(err)
	}
	if run.ID < before.ID+1000 {
		f.t.Errorf("the next run is %d after %d", run.ID, before.ID)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		now, err := api.Run(f.t.Context(), "acme", run.ID)
		if err != nil {
			f.t.Fatal(err)
		}
		prepared := 0
		for _, h := range now.Hosts {
			if h.Status != "pending" && h.Status != "preparing" {
				prepared++
			}
		}
		if prepared == 3 {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the hosts of the next run are %+v", now.Hosts)
		}
	}
}

// copyFolder copies a folder as an administrator does.
func (f *fleet) copyFolder(from, to string) {
	f.t.Helper()
	if out, err := exec.CommandContext(f.t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil { //nolint:gosec // a test
		f.t.Fatalf("cannot copy %s: %v: %s", filepath.Base(from), err, out)
	}
}
