package examples_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// watched is a configuration whose plan is never empty: an output moves, and a data source
// of a check block is read in each apply.
const watched = acctest.Requirement + `
resource "osupgrade_config" "drift" {
  worker_applications = ["appliance"]
  maintenance_windows = [{ days_of_week = ["Friday"], start_time = "22:00", duration = "4h" }]
}
output "now" {
  value = timestamp()
}
check "idle" {
  data "osupgrade_state" "drift" {}
  assert {
    condition     = data.osupgrade_state.drift.status == "busy"
    error_message = "The status is \"${data.osupgrade_state.drift.status}\"."
  }
}
`

// gh stands for the program of GitHub: one issue at most is open, in a folder.
const gh = `#!/usr/bin/env bash
set -euo pipefail
echo "$1 $2" >>"$ISSUES/calls"
case "$1 $2" in
"issue list") [ ! -f "$ISSUES/open" ] || echo 7 ;;
"issue create" | "issue edit") cp body.md "$ISSUES/open" ;;
"issue close") rm "$ISSUES/open" ;;
esac
`

// pipeline plays the workflow of the drift example, as GitHub Actions would.
type pipeline struct {
	*acctest.Workspace
	bin, issues string
}

func newPipeline(t *testing.T, server acctest.Server) pipeline {
	t.Helper()
	w := acctest.NewMirrorWorkspace(t, server.Env()...)
	p := pipeline{w, t.TempDir(), t.TempDir()}
	w.Write(t, "main.tf", watched)
	cli := acctest.CLI(t)
	if err := os.Symlink(cli, filepath.Join(p.bin, "terraform")); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{filepath.Join(p.bin, "gh"): gh, filepath.Join(w.Dir, "drift.sh"): read(t, "modules/drift/drift.sh")} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	return p
}

// run runs the steps of the workflow. It returns which step failed, the output, and the
// issue that is open then.
func (p pipeline) run(t *testing.T) (failed, output, issue string) {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct{ Steps []struct{ Name, Run string } }
	}
	if err := yaml.Unmarshal([]byte(read(t, "modules/drift/drift.yml")), &workflow); err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	variables := filepath.Join(t.TempDir(), "env")
	env := append(os.Environ(), p.Env...)
	env = append(env, "PATH="+p.bin+":"+os.Getenv("PATH"), "ISSUES="+p.issues, "GITHUB_ENV="+variables)
	steps := 0
	for _, step := range workflow.Jobs["drift"].Steps {
		if step.Run == "" {
			continue
		}
		steps++
		set, err := os.ReadFile(variables)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), "bash", "-e", "-c", step.Run)
		command.Dir, command.Env = p.Dir, append(env, strings.Fields(string(set))...)
		command.Stdout, command.Stderr = &printed, &printed
		if command.Run() != nil {
			failed = step.Name
			break
		}
	}
	if steps == 0 {
		t.Fatal("the workflow has no steps")
	}
	open, err := os.ReadFile(filepath.Join(p.issues, "open"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return failed, printed.String(), string(open)
}

// driftWorkflow: an issue is open from the time that something has drifted until it has not,
// although the exit code of each plan is 2; and no issue says what nobody knows.
func driftWorkflow(t *testing.T, site realagent.Site) {
	server := site.Server
	server.Tenant = "drift"
	p := newPipeline(t, server)
	admin := p.Env
	viewer := append(append([]string{}, admin...), "OSUPGRADE_TOKEN="+site.TokenOf(t, "drift", access.Viewer))
	p.Run(t, 0, "init", "-no-color")
	p.Run(t, 0, "apply", "-auto-approve", "-no-color")
	p.Run(t, 2, "plan", "-detailed-exitcode", "-no-color")
	p.Env = viewer
	failed, out, issue := p.run(t)
	if failed != "" || issue != "" || !strings.Contains(out, `The status is "idle".`) {
		t.Fatalf("nothing has drifted, and a check fails: step %q failed, the issue is %q:\n%s", failed, issue, out)
	}

	if _, err := rest(t, server).PutConfig(t.Context(), server.Tenant, v1.OSUpgrade{
		WorkerApplications: []v1.WorkerApplication{{Name: "appliance"}},
		MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Friday", StartTime: "22:00", Duration: "5h"}},
	}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if failed, out, issue = p.run(t); failed != "" || !strings.Contains(issue, `"5h" -> "4h"`) || strings.Contains(issue, server.Token) {
			t.Fatalf("a window has drifted: step %q failed, the issue is %q:\n%s", failed, issue, out)
		}
	}
	if calls := read(t, filepath.Join(p.issues, "calls")); strings.Count(calls, "issue create") != 1 || strings.Count(calls, "issue edit") != 1 {
		t.Errorf("want one issue that is edited, not %q", calls)
	}

	p.Env = append(append([]string{}, admin...), "OSUPGRADE_TOKEN=osu_wrong")
	if failed, out, issue = p.run(t); failed != "plan" || issue == "" || !strings.Contains(out, "osupgrade-agent credentials token") {
		t.Errorf("with a wrong token step %q failed, the issue is %q:\n%s", failed, issue, out)
	}

	p.Env = admin
	p.Run(t, 0, "apply", "-auto-approve", "-no-color")
	p.Env = viewer
	if failed, out, issue = p.run(t); failed != "" || issue != "" {
		t.Errorf("the drift is gone: step %q failed, the issue is %q:\n%s", failed, issue, out)
	}
	p.Env = admin
	p.Run(t, 0, "destroy", "-auto-approve", "-no-color")
	gone(t, server, server.Tenant)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
