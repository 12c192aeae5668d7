package dev_test

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestOutputIsKept checks that what the actions of a host have printed in a run can be
// read after the run, after the next one, and after a restart of the site.
func TestOutputIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, api := begin(t, dir, 1)
	put(t, api, v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: dev.Application}}})
	var runs []uint64
	for range 2 {
		started, err := api.Start(t.Context(), dev.Tenant, v1.Start{OverrideWindow: true, Reason: "a test"})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, started.ID)
		if err := api.Watch(t.Context(), dev.Tenant, func(r v1.Run) bool { return r.ID != started.ID || !r.Finished() }); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(api *client.Client) {
		t.Helper()
		for _, id := range runs {
			var actions []string
			// A run does not wait for the output of its last action.
			for late := time.Now().Add(time.Minute); len(actions) < 2 && time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
				outputs, err := api.Output(t.Context(), dev.Tenant, id, "h01")
				if err != nil {
					t.Fatal(err)
				}
				actions = nil
				for _, o := range outputs {
					if strings.Contains(o.Output, `"action":"`+o.Action+`"`) {
						actions = append(actions, o.Action)
					}
				}
			}
			if got := strings.Join(actions, " "); got != "prepare upgrade" {
				t.Errorf("in run %d h01 has printed in %q", id, got)
			}
		}
	}
	shows(api)
	if _, err := api.Output(t.Context(), dev.Tenant, runs[0], "h77"); !client.Missing(err) {
		t.Errorf("of a host that was not in the run the error is %v", err)
	}
	if _, err := api.Output(t.Context(), dev.Tenant, 99_999, "h01"); !client.Missing(err) {
		t.Errorf("of a run that there was not the error is %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d, api = begin(t, dir, 1)
	defer func() { _ = d.Close() }()
	shows(api)
}
