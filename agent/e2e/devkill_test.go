package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestDevKilledInAReboot kills dev with SIGKILL while a simulated host is down, and
// checks that the next start is the boot: the run completes, and the host has booted
// once.
func TestDevKilledInAReboot(t *testing.T) {
	t.Parallel()
	f := newProgram(t)
	f.tenant = "demo"
	dev := f.startDev()
	api := f.client()
	if _, err := api.PutConfig(t.Context(), f.tenant, v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "os-upgrade-simulated"}}}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	f.gather(api, 1)
	run, err := api.Start(t.Context(), f.tenant, v1.Start{OverrideWindow: true, Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for f.effects("reboot") == 0 {
		if time.Now().After(deadline) {
			t.Fatal("the host is not told to reboot")
		}
		time.Sleep(10 * time.Millisecond)
	}
	dev.kill()
	if f.effects("boot") != 0 {
		t.Fatal("the host has booted: dev was killed too late")
	}
	f.startDev()
	ended := f.finished(f.client(), run.ID)
	if ended.Result != "completed" {
		t.Errorf("the run ended as %s: %s; %+v", ended.Result, ended.Reason, ended.Hosts)
	}
	if asked, boots := f.effects("reboot"), f.effects("boot"); asked != 1 || boots != 1 {
		t.Errorf("the host was asked to reboot %d times and has booted %d times", asked, boots)
	}
}

// startDev starts dev with one host, whose boot takes long enough to be seen.
func (f *fleet) startDev() *process {
	f.t.Helper()
	p, _ := f.launch("dev", "dev", "--hosts", "1", "--data", f.path("data"), "--listen", "127.0.0.1:0", "--action-time", "2s")
	env, err := os.ReadFile(f.path("data", "dev.env"))
	if err != nil {
		f.t.Fatal(err)
	}
	for name, to := range map[string]*string{"OSUPGRADE_ENDPOINT=http://": &f.api, "OSUPGRADE_TOKEN=": &f.token} {
		found := regexp.MustCompile(regexp.QuoteMeta(name) + `(\S+)`).FindStringSubmatch(string(env))
		if found == nil {
			f.t.Fatalf("dev.env has no %s:\n%s", name, env)
		}
		*to = found[1]
	}
	return p
}

// effects counts the lines of the simulated host's own record of an effect.
func (f *fleet) effects(action string) int {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, "data", "hosts", "h01", "effects.log"))
	if err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	return strings.Count(string(text), `"action":"`+action+`"`)
}
