package dev_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func begin(t *testing.T, dir string, hosts int) (*dev.Dev, *client.Client) {
	t.Helper()
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(client.Options{Endpoint: d.Endpoint, Token: d.Token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	return d, api
}

// always is a window that is open at any time of the test.
func always() v1.OSUpgrade {
	return v1.OSUpgrade{
		WorkerApplications: []v1.WorkerApplication{{Name: dev.Application}},
		MaintenanceWindows: []v1.MaintenanceWindow{{
			DaysOfWeek: "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday",
			StartTime:  time.Now().UTC().Add(-time.Minute).Format("15:04"), Timezone: "UTC", Duration: "1h",
		}},
	}
}

func put(t *testing.T, api *client.Client, config v1.OSUpgrade) {
	t.Helper()
	if _, err := api.PutConfig(t.Context(), dev.Tenant, config, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
}

// ended follows the runs until one has ended.
func ended(t *testing.T, api *client.Client) v1.Run {
	t.Helper()
	var last v1.Run
	if err := api.Watch(t.Context(), dev.Tenant, func(r v1.Run) bool {
		last = r
		return !r.Finished()
	}); err != nil {
		t.Fatal(err)
	}
	return last
}

// TestWindowOpensRun checks that a window that opens starts a run by itself,
// just one, and that a site started again on its folder remembers all of it.
// TestExample checks that apply reads what dev writes to begin with, and that a
// file which is there stays.
func TestExample(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "example.yaml")
	if err := dev.WriteExample(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := intent.Decode(intent.Source{Name: path, Text: text}); err != nil {
		t.Error(err)
	}
	own := []byte("config: {}\n")
	if err := os.WriteFile(path, own, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dev.WriteExample(path); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || !bytes.Equal(text, own) {
		t.Errorf("the operator's own file is now %q, %v", text, err)
	}
}

func TestWindowOpensRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, api := begin(t, dir, 2)
	config := always()
	put(t, api, config)
	run := ended(t, api)
	if run.Result != "completed" || run.Trigger != "window" || len(run.Hosts) != 2 {
		t.Fatalf("the window's run: %+v", run)
	}
	// The same window, for it opens at the same time.
	config.MaintenanceWindows[0].Duration = "2h"
	put(t, api, config)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	again, api := begin(t, dir, 2)
	defer func() { _ = again.Close() }()
	if again.Token != d.Token {
		t.Error("a site started again on its folder has another token")
	}
	state, err := api.State(t.Context(), dev.Tenant, "")
	if err != nil || state.Status != "idle" || state.NextUpgradeAt == nil || !state.NextUpgradeAt.After(run.OpenedAt) || len(state.ScheduledWorkers) != 2 {
		t.Errorf("state is %+v, %v", state, err)
	}
	runs, err := api.Runs(t.Context(), dev.Tenant, v1.RunFilter{})
	if err != nil || len(runs) != 1 || runs[0].ID != run.ID {
		t.Errorf("one window has the runs %+v, %v", runs, err)
	}
	hosts, err := api.Hosts(t.Context(), dev.Tenant, "")
	if err != nil || hosts[1].Versions["kernel"] != "6.1.1" {
		t.Errorf("hosts are %+v, %v", hosts, err)
	}
}

// TestHostThatDies checks that a host that cannot go on is told of, and which
// one it is.
func TestHostThatDies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, api := begin(t, dir, 2)
	defer func() { _ = d.Close() }()
	// A file where the journal's folder was: nothing can be written ahead.
	state := filepath.Join(dir, "hosts", "h02", "worker")
	if err := os.Rename(state, state+".gone"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, api, v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: dev.Application}}})
	// Its next action is the last one, if it has not found out by itself.
	_, _ = api.Start(t.Context(), dev.Tenant, v1.Start{OverrideWindow: true, Reason: "a test"})
	if err := <-d.Failed(); err == nil || !strings.Contains(err.Error(), "host h02: ") {
		t.Errorf("a host that dies is told of as: %v", err)
	}
}

// TestHostThatIsOff checks that a host without power answers nothing, and that the others and the
// labels that they were given are there.
func TestHostThatIsOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Hosts: 2, Labels: map[string]map[string]string{"h02": {"shop": "basel"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	api, err := client.New(client.Options{Endpoint: d.Endpoint, Token: d.Token})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hosts", "h02", "faults.json"), []byte(`{"prepare":"power-off"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, api, v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: dev.Application}}})
	if _, err := api.PutRollout(t.Context(), dev.Tenant, v1.Rollout{PreparePatience: "1s"}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Start(t.Context(), dev.Tenant, v1.Start{OverrideWindow: true, Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	if run := ended(t, api); run.Result != "partial" {
		t.Errorf("the run ended as %s: %s", run.Result, run.Reason)
	}
	hosts, err := api.Hosts(t.Context(), dev.Tenant, "")
	if err != nil || len(hosts) != 2 || hosts[0].Versions["kernel"] != "6.1.1" || hosts[1].Versions["kernel"] != "6.1.0" ||
		hosts[1].Labels["shop"] != "basel" || hosts[1].Labels["ring"] != "1" {
		t.Errorf("hosts are %+v, %v", hosts, err)
	}
}

// TestHostThatCrashes checks that a host whose worker crashes in the middle of
// its upgrade, on either side of the effect, is upgraded once all the same.
func TestHostThatCrashes(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"crash-before", "crash-after"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d, api := begin(t, dir, 1)
			defer func() { _ = d.Close() }()
			host := filepath.Join(dir, "hosts", "h01")
			if err := os.WriteFile(filepath.Join(host, "faults.json"), []byte(`{"upgrade":"`+fault+`"}`), 0o600); err != nil {
				t.Fatal(err)
			}
			put(t, api, v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: dev.Application}}})
			if _, err := api.Start(t.Context(), dev.Tenant, v1.Start{OverrideWindow: true, Reason: "a test"}); err != nil {
				t.Fatal(err)
			}
			if run := ended(t, api); run.Result != "completed" {
				t.Errorf("the run ended as %s: %s", run.Result, run.Reason)
			}
			effects, err := os.ReadFile(filepath.Join(host, "effects.log"))
			if err != nil {
				t.Fatal(err)
			}
			for _, action := range []string{"upgrade", "boot"} {
				if n := strings.Count(string(effects), `"action":"`+action+`"`); n != 1 {
					t.Errorf("%s happened %d times:\n%s", action, n, effects)
				}
			}
		})
	}
}
