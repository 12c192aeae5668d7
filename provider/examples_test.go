package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

func example(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "examples", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestExamples_run applies every example that stands in the documentation.
func TestExamples_run(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"resources/osupgrade_config/resource.tf", "resources/osupgrade_run/resource.tf",
		"data-sources/osupgrade_state/data-source.tf", "data-sources/osupgrade_hosts/data-source.tf",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			api.SetHosts(acctest.Tenant, v1.Host{Hostname: "h01", Versions: map[string]string{"kernel": "6.12"}})
			api.OnStart(func(tenant string, run v1.Run) { api.FinishRun(tenant, run.ID, "completed", "") })
			acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{Config: server.Config(example(t, path))}}})
		})
	}
}

func TestExamples_import(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"osupgrade_config", "osupgrade_run"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			api.SetConfig(acctest.Tenant, v1.OSUpgrade{})
			api.AddRun(acctest.Tenant, v1.Run{Phase: "finished", Result: "completed"})
			w := acctest.NewWorkspace(t, server.Env()...)
			w.Write(t, "main.tf", acctest.Requirement+example(t, "resources/"+name+"/import-by-string-id.tf"))
			w.Run(t, 0, "plan", "-input=false", "-generate-config-out=generated.tf")

			w = acctest.NewWorkspace(t, server.Env()...)
			w.Write(t, "main.tf", acctest.Requirement+"resource \""+name+"\" \"acme\" {}\n")
			w.Run(t, 0, strings.Fields(lastLine(example(t, "resources/"+name+"/import.sh")))[1:]...)
		})
	}
}

func TestExamples_provider(t *testing.T) {
	t.Parallel()
	w := acctest.NewWorkspace(t)
	w.Write(t, "main.tf", strings.ReplaceAll(example(t, "provider/provider.tf"), `"osupgrade/osupgrade"`, `"`+acctest.Source+`"`))
	w.Run(t, 0, "validate")
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
