package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestLiveOutput checks that what a script has printed is shown while it runs, and that it is
// still there after the host was released.
func TestLiveOutput(t *testing.T) {
	t.Parallel()
	f := newProgram(t)
	f.record()
	f.startSite()
	f.token = f.command("credentials", "token", "--data", f.dir+"/site", "--tenant", "acme", "--name", "test")
	f.writeHost("h01")
	upgrade := f.path("h01", "scripts", "upgrade")
	script, err := os.ReadFile(upgrade)
	if err != nil {
		t.Fatal(err)
	}
	printing := strings.Replace(string(script), "#!/bin/sh\n", "#!/bin/sh\necho the first line\n", 1)
	if err := os.WriteFile(upgrade, []byte(printing), 0o755); err != nil { //nolint:gosec // a script
		t.Fatal(err)
	}
	f.command("credentials", "host", "--data", f.dir+"/site", "--tenant", "acme", "--host", "h01", "--out", f.path("h01", "key"))
	f.workers["h01"] = f.startWorker("h01")
	api := f.client()
	if _, err := api.PutConfig(t.Context(), "acme", v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "appliance"}}}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	f.gather(api, 1)
	r, err := api.Start(t.Context(), "acme", v1.Start{OverrideWindow: true, Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	f.await("h01 upgrade begins") // It ends when it is told to.
	shows := func() bool {
		outputs, err := api.Output(t.Context(), "acme", r.ID, "h01")
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range outputs {
			if o.Action == "upgrade" && o.Output == "the first line\n" {
				return true
			}
		}
		return false
	}
	for begun := time.Now(); !shows(); _ = wait.Sleep(t.Context(), 50*time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatal("the output of the script is not shown while it runs")
		}
	}
	if _, err := api.Release(t.Context(), "acme", v1.Ask{Host: "h01", Reason: "it hangs"}); err != nil {
		t.Fatal(err)
	}
	if !shows() {
		t.Error("after the release of the host its output is gone")
	}
	f.release("h01")
}
