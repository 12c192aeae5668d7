package provider_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

var record = flag.String("record", "", "the version whose state TestUpgrade records; see testdata/upgrade/README.md")

// fixtures is the folder with the states of released versions.
const fixtures = "testdata/upgrade"

// stored is what the server had when a state was written: server.json.
type stored struct {
	Config    map[string]v1.OSUpgrade `json:"config"`
	Rollout   v1.Rollout              `json:"rollout"`
	Calendars map[string]v1.Calendar  `json:"calendars"`
	Runs      []v1.Run                `json:"runs"`
}

// TestUpgrade: the state that a released version has written needs no change, can be
// changed in place, and can be destroyed.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	if *record != "" {
		recordState(t, *record)
	}
	versions, err := filepath.Glob(filepath.Join(fixtures, "v*"))
	if err != nil || len(versions) == 0 {
		t.Fatalf("there are no states of released versions: %v", err)
	}
	for _, folder := range versions {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			upgrade(t, folder)
		})
	}
}

func upgrade(t *testing.T, folder string) {
	t.Helper()
	api, server := acctest.Fake(t)
	restore(t, api, folder)
	w := acctest.NewWorkspace(t, server.Env()...)
	config := fixture(t, folder, "main.tf")
	w.Write(t, "main.tf", acctest.Requirement+config)
	w.Write(t, "terraform.tfstate", fixture(t, folder, "state.json"))
	w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	if n := api.Count(http.MethodPut, ""); n != 0 {
		t.Errorf("an apply without a change has written %d times", n)
	}
	w.Write(t, "main.tf", acctest.Requirement+strings.NewReplacer(`"240m"`, `"5h"`, `"The shops are busy."`, `"Busy."`, `"pause"`, `"stop"`).Replace(config))
	if out := w.Run(t, 0, "apply", "-auto-approve", "-no-color"); !strings.Contains(out, "0 added, 3 changed, 0 destroyed") {
		t.Errorf("want three changes in place:\n%s", out)
	}
	w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
	if _, _, left := api.Config(acctest.Tenant); left {
		t.Error("the configuration is left after destroy")
	}
}

func fixture(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// restore gives the server what it had when the state was written.
func restore(t *testing.T, api *fakeapi.Server, folder string) {
	t.Helper()
	var had stored
	if err := json.Unmarshal([]byte(fixture(t, folder, "server.json")), &had); err != nil {
		t.Fatal(err)
	}
	for tenant, config := range had.Config {
		api.SetConfig(tenant, config)
	}
	api.SetRollout(acctest.Tenant, had.Rollout)
	for name, calendar := range had.Calendars {
		api.SetCalendar(acctest.Tenant, name, calendar)
	}
	for _, run := range had.Runs {
		api.AddRun(acctest.Tenant, run)
	}
}

// recordState writes the state of the provider of today, from the configuration in the
// folder of the version or, without one, of the version before.
func recordState(t *testing.T, version string) {
	t.Helper()
	folder := filepath.Join(fixtures, version)
	if _, err := os.Stat(filepath.Join(folder, "main.tf")); os.IsNotExist(err) {
		before, err := filepath.Glob(filepath.Join(fixtures, "v*", "main.tf"))
		if err != nil || len(before) == 0 {
			t.Fatalf("no version before has a configuration: %v", err)
		}
		keep(t, folder, "main.tf", fixture(t, filepath.Dir(slices.Max(before)), "main.tf"))
	}
	api, server := acctest.Fake(t)
	api.SetHosts(acctest.Tenant, v1.Host{Hostname: "h01"}, v1.Host{Hostname: "h02"})
	api.OnStart(func(tenant string, run v1.Run) {
		api.EditRun(tenant, run.ID, func(r *v1.Run) {
			// A record does not depend on the time.
			r.OpenedAt = time.Date(2026, 11, 27, 1, 0, 0, 0, time.UTC)
			r.NotAfter = r.OpenedAt.Add(4 * time.Hour)
		})
		api.FinishRun(tenant, run.ID, "completed", "")
	})
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+fixture(t, folder, "main.tf"))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	had := stored{Config: map[string]v1.OSUpgrade{}, Calendars: map[string]v1.Calendar{}, Runs: api.Runs(acctest.Tenant)}
	for _, tenant := range []string{acctest.Tenant, "other"} {
		had.Config[tenant], _, _ = api.Config(tenant)
	}
	had.Rollout, _, _ = api.Rollout(acctest.Tenant)
	for _, name := range []string{"christmas", "audit"} {
		had.Calendars[name], _, _ = api.Calendar(acctest.Tenant, name)
	}
	text, err := json.MarshalIndent(had, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	keep(t, folder, "server.json", string(text)+"\n")
	keep(t, folder, "state.json", fixture(t, w.Dir, "terraform.tfstate"))
}

func keep(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
