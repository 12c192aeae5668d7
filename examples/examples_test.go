// Package examples_test runs the examples of the provider's documentation with the
// real CLI against the real agent. Only the endpoint differs from the examples.
package examples_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := acctest.Cleanup(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// TestExamples applies every example at once, plans again without a
// difference, imports what the import examples name, and destroys it.
func TestExamples(t *testing.T) {
	t.Parallel()
	server, _ := realagent.Start(t, 2)
	w := acctest.NewWorkspace(t, server.Env()...)
	lay(t, w, server, "provider/provider.tf")
	lay(t, w, server, "resources/osupgrade_config/resource.tf")
	lay(t, w, server, "resources/osupgrade_calendar/resource.tf")
	lay(t, w, server, "functions/next_windows/function.tf")
	lay(t, w, server, "functions/in_window/function.tf")
	lay(t, w, server, "functions/normalize_duration/function.tf")
	lay(t, w, server, "functions/parse_ics/function.tf")
	lay(t, w, server, "data-sources/osupgrade_hosts/data-source.tf")
	lay(t, w, server, "data-sources/osupgrade_state/data-source.tf")
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	// A data source needs what it reads, and a run is of the hosts that the configuration
	// names, so both come after it.
	lay(t, w, server, "data-sources/osupgrade_config/data-source.tf")
	lay(t, w, server, "resources/osupgrade_run/resource.tf")
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	// What the run changed on the hosts is an output that has changed.
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
	id := regexp.MustCompile(`run_id\s+= (\d+)`).FindStringSubmatch(w.Run(t, 0, "state", "show", "-no-color", "osupgrade_run.acme"))
	if id == nil {
		t.Fatal("the state has no run")
	}
	w.Run(t, 0, "state", "rm", "osupgrade_config.acme", "osupgrade_calendar.christmas", "osupgrade_run.acme")
	lay(t, w, server, "resources/osupgrade_calendar/import-by-string-id.tf")
	lay(t, w, server, "resources/osupgrade_config/import-by-string-id.tf")
	lay(t, w, server, "resources/osupgrade_run/import-by-string-id.tf", "acme/41", "acme/"+id[1])
	if out := w.Run(t, 0, "plan", "-no-color"); !strings.Contains(out, "3 to import") {
		t.Errorf("the import examples import something else:\n%s", out)
	}
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
}

// lay puts an example into the workspace, with pairs of texts replaced.
func lay(t *testing.T, w *acctest.Workspace, server acctest.Server, path string, replace ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pairs := append(replace, "http://127.0.0.1:4646", server.Endpoint, `"osupgrade/osupgrade"`, `"`+acctest.Source+`"`)
	w.Write(t, strings.ReplaceAll(path, string(filepath.Separator), "-"), strings.NewReplacer(pairs...).Replace(string(text)))
}

// TestEveryExampleIsRun fails if no test runs a new example. The provider's own tests
// run the examples of rollouts and of past runs.
func TestEveryExampleIsRun(t *testing.T) {
	t.Parallel()
	// TestModules and TestPolicy run these.
	modules := map[string]bool{"fleet": true, "tenants": true, "import": true, "policy": true, "windows": true, "owners": true, "shops": true, "platform": true}
	known := map[string]bool{
		"provider/provider.tf": true, "provider/provider-token.tf": true, "provider/provider-login.tf": true, "demo/main.tf": true, "demo/shops/main.tf": true,
		"resources/osupgrade_config/resource.tf": true, "resources/osupgrade_config/import-by-string-id.tf": true,
		"resources/osupgrade_calendar/resource.tf": true, "resources/osupgrade_calendar/import-by-string-id.tf": true,
		"resources/osupgrade_rollout/resource.tf": true, "resources/osupgrade_rollout/steps.tf": true, "resources/osupgrade_rollout/import-by-string-id.tf": true,
		"resources/osupgrade_maintenance_window/resource.tf": true, "resources/osupgrade_maintenance_window/import-by-string-id.tf": true,
		"resources/osupgrade_policy/resource.tf": true, "resources/osupgrade_policy/import-by-string-id.tf": true,
		"resources/osupgrade_user/resource.tf": true, "resources/osupgrade_user/import-by-string-id.tf": true,
		"resources/osupgrade_approle/resource.tf": true, "resources/osupgrade_approle/import-by-string-id.tf": true,
		"resources/osupgrade_webhook/resource.tf": true, "resources/osupgrade_webhook/import-by-string-id.tf": true,
		"resources/osupgrade_tenant/resource.tf": true, "resources/osupgrade_tenant/import-by-string-id.tf": true,
		"resources/osupgrade_disruption_budget/resource.tf": true, "resources/osupgrade_disruption_budget/import-by-string-id.tf": true,
		"resources/osupgrade_environment/resource.tf": true, "resources/osupgrade_environment/import-by-string-id.tf": true,
		"actions/osupgrade_start/action.tf": true, "actions/osupgrade_pause/action.tf": true, "actions/osupgrade_resume/action.tf": true,
		"actions/osupgrade_abort/action.tf": true, "actions/osupgrade_approve/action.tf": true, "actions/osupgrade_release/action.tf": true,
		"actions/osupgrade_skip_window/action.tf": true, "actions/osupgrade_rollback_run/action.tf": true,
		"ephemeral-resources/osupgrade_token/ephemeral-resource.tf": true, "ephemeral-resources/osupgrade_join_token/ephemeral-resource.tf": true,
		"functions/next_windows/function.tf": true, "functions/in_window/function.tf": true, "functions/normalize_duration/function.tf": true,
		"functions/parse_ics/function.tf":            true,
		"data-sources/osupgrade_runs/data-source.tf": true, "data-sources/osupgrade_config/data-source.tf": true,
		"resources/osupgrade_run/resource.tf": true, "resources/osupgrade_run/without-waiting.tf": true, "resources/osupgrade_run/import-by-string-id.tf": true,
		"data-sources/osupgrade_hosts/data-source.tf": true, "data-sources/osupgrade_state/data-source.tf": true,
		"data-sources/osupgrade_environment/data-source.tf": true, "data-sources/osupgrade_health/data-source.tf": true,
		"data-sources/osupgrade_releases/data-source.tf": true, "resources/osupgrade_release/resource.tf": true,
		"resources/osupgrade_release/import-by-string-id.tf": true, "demo/platform/main.tf": true, "release/main.tf": true,
	}
	found := 0
	err := filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".tf" {
			if below, ok := strings.CutPrefix(path, "modules/"); ok {
				if folder, _, _ := strings.Cut(below, "/"); !modules[folder] {
					t.Errorf("no test runs %s", path)
				}
				return nil
			}
			found++
			if !known[path] {
				t.Errorf("no test runs %s", path)
			}
		}
		return err
	})
	if err != nil || found != len(known) {
		t.Errorf("%d examples found, %d known: %v", found, len(known), err)
	}
}
