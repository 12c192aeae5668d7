package provider_test

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

func TestMain(m *testing.M) {
	if os.Getenv(peerVariable) != "" {
		servePeer()
		return
	}
	code := m.Run()
	if err := acctest.Cleanup(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const everything = acctest.Requirement + `
resource "osupgrade_config" "acme" {
  worker_applications = ["os-upgrade-debian"]
  maintenance_windows = [{ days_of_week = ["Friday"], start_time = "01:00", duration = "4h" }]
}
resource "osupgrade_run" "acme" {
  triggers = { release = "one" }
}
data "osupgrade_state" "acme" {}
data "osupgrade_hosts" "acme" {}
`

// TestBinary_theTokenIsNowhere looks for the token in all that a user could
// hand on: what the CLI prints, its most detailed log, state and plan.
func TestBinary_theTokenIsNowhere(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.OnStart(func(tenant string, run v1.Run) { api.FinishRun(tenant, run.ID, "completed", "") })
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Env = append(w.Env, "TF_LOG=TRACE", "TF_LOG_PATH="+filepath.Join(w.Dir, "trace.log"))
	w.Write(t, "main.tf", everything)
	printed := []string{
		w.Run(t, 2, "plan", "-input=false", "-detailed-exitcode", "-out=saved.plan"),
		w.Run(t, 0, "show", "-json", "saved.plan"),
		w.Run(t, 0, "apply", "-input=false", "saved.plan"),
		w.Run(t, 0, "plan", "-input=false", "-detailed-exitcode"),
		w.Run(t, 0, "show", "-json"),
	}
	for _, fault := range []fakeapi.Fault{
		fakeapi.Status(http.StatusUnauthorized, "the token "+server.Token+" has expired"),
		fakeapi.Raw(http.StatusForbidden, "text/html", "<html>"+server.Token+"</html>"),
		fakeapi.Cut(),
	} {
		api.Inject(http.MethodGet, "/os-upgrade", fault)
		printed = append(printed, w.Run(t, 1, "plan", "-input=false"))
	}
	for i, text := range printed {
		if strings.Contains(text, server.Token) {
			t.Errorf("command %d has printed the token", i)
		}
	}
	files := 0
	err := fs.WalkDir(os.DirFS(w.Dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(filepath.Join(w.Dir, name))
		if strings.Contains(string(content), server.Token) {
			t.Errorf("%s holds the token", name)
		}
		return err
	})
	if err != nil || files < 4 {
		t.Errorf("looked into %d files, %v, want the configuration, the plan, the state and the log", files, err)
	}
}

// TestBinary_theTokenInASavedPlan: Terraform writes the value of an ordinary variable to a
// saved plan, and that of an ephemeral one not, as the provider's page says.
func TestBinary_theTokenInASavedPlan(t *testing.T) {
	t.Parallel()
	for kind, written := range map[string]bool{"sensitive": true, "ephemeral": false} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			_, server := acctest.Fake(t)
			w := acctest.NewWorkspace(t, "OSUPGRADE_ENDPOINT="+server.Endpoint, "OSUPGRADE_TENANT="+server.Tenant, "TF_VAR_osupgrade_token="+server.Token)
			w.Write(t, "main.tf", acctest.Requirement+`
variable "osupgrade_token" {
  type = string
  `+kind+` = true
}
provider "osupgrade" {
  token = var.osupgrade_token
}
resource "osupgrade_rollout" "acme" {}
`)
			w.Run(t, 0, "plan", "-input=false", "-out=saved.plan")
			if got := zipContains(t, filepath.Join(w.Dir, "saved.plan"), server.Token); got != written {
				t.Errorf("the token is in the saved plan: %v, want %v", got, written)
			}
			w.Run(t, 0, "apply", "-input=false", "saved.plan")
		})
	}
}

func zipContains(t *testing.T, name, text string) bool {
	t.Helper()
	archive, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }() // It was read only.
	found := false
	for _, entry := range archive.File {
		content, err := fs.ReadFile(archive, entry.Name)
		if err != nil {
			t.Fatal(err)
		}
		found = found || strings.Contains(string(content), text)
	}
	return found
}

func TestBinary_importWithGeneratedConfiguration(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.SetConfig(acctest.Tenant, v1.OSUpgrade{
		WorkerApplications: []v1.WorkerApplication{{Name: "os-upgrade-debian"}},
		MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Saturday,friday", StartTime: "01:00", Duration: "240m"}},
	})
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+"import {\n  to = osupgrade_config.acme\n  id = \"acme\"\n}\n")
	w.Run(t, 0, "plan", "-input=false", "-generate-config-out=generated.tf")
	w.Run(t, 0, "apply", "-input=false", "-auto-approve")
	w.Run(t, 0, "plan", "-input=false", "-detailed-exitcode")
	if n := api.Count(http.MethodPut, ""); n != 0 {
		t.Errorf("the import has written %d times", n)
	}
	api.EditConfig(acctest.Tenant, func(c *v1.OSUpgrade) { c.MaintenanceWindows[0].Duration = "5h" })
	if out := w.Run(t, 2, "plan", "-input=false", "-detailed-exitcode", "-no-color"); !strings.Contains(out, `"5h" -> "240m"`) {
		t.Errorf("the plan does not show the drift:\n%s", out)
	}
	if out := w.Run(t, 0, "destroy", "-input=false", "-auto-approve", "-no-color"); !strings.Contains(out, "Hosts are no longer upgraded") {
		t.Errorf("the deletion does not warn:\n%s", out)
	}
}

// TestBinary_theProgressIsInTheLog holds that each change of a run is one line.
func TestBinary_theProgressIsInTheLog(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.SetHosts(acctest.Tenant, v1.Host{Hostname: "h01"})
	api.OnStart(func(tenant string, run v1.Run) {
		go func() {
			api.AwaitStreams(1)
			api.EditRun(tenant, run.ID, func(r *v1.Run) { r.Phase = "upgrading"; r.Hosts[0].Status = "upgrading" })
			api.AwaitStreams(1) // It has seen that.
			api.FinishRun(tenant, run.ID, "completed", "")
		}()
	})
	w := acctest.NewWorkspace(t, server.Env()...)
	log := filepath.Join(w.Dir, "info.log")
	w.Env = append(w.Env, "TF_LOG_PROVIDER=INFO", "TF_LOG_PATH="+log)
	w.Write(t, "main.tf", acctest.Requirement+"resource \"osupgrade_run\" \"acme\" {}\n")
	w.Run(t, 0, "apply", "-input=false", "-auto-approve")
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"run 41 is preparing: 0 of 1 host upgraded", "host h01 is upgrading", "host h01 is upgraded",
		"run 41 is finished: 1 of 1 host upgraded", "run 41 ended: completed",
	} {
		if n := strings.Count(string(content), line); n != 1 {
			t.Errorf("%q stands %d times in the log, want once", line, n)
		}
	}
}
