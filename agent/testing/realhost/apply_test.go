package realhost_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/recording"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := acctest.Cleanup(); err != nil {
		code = 1
	}
	os.Exit(code)
}

const configuration = acctest.Requirement + `
provider "osupgrade" {}

variable "release" {
  type = string
}

resource "osupgrade_run" "appliance" {
  triggers        = { release = var.release }
  override_window = true
  reason          = "Release ${var.release}"
  duration        = "1h"
}

data "osupgrade_hosts" "all" {
  depends_on = [osupgrade_run.appliance]
}

output "appliance" {
  value = { for h in data.osupgrade_hosts.all.hosts : h.hostname => h.versions["appliance"] }
}
`

// TestRealApply is the whole way: terraform apply starts a run, a Debian machine is
// upgraded by apt and reboots, and Terraform reads the new versions. The guide on apt shows it.
func TestRealApply(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	r := newRig(t, realhost.ContainerOptions{}, appliance("1.0"), kernel("1.0"), held("1.0"))
	first := r.c.BootID()
	r.c.Must("apt-mark hold appliance-held")
	r.repository.Add(appliance("2.0"), kernel("2.0"), held("2.0"))

	server := acctest.Server{Endpoint: r.Endpoint, Token: r.Token, Tenant: realhost.Tenant}
	terraform := acctest.NewWorkspace(t, server.Env()...)
	terraform.Write(t, "main.tf", configuration)
	recording.Check(t, "../../../docs/guides/apt.md", "This session is recorded by make record on a real machine.", func(commands []recording.Command) []string {
		return r.play(terraform, commands)
	})
	runs, err := r.Client.Runs(t.Context(), realhost.Tenant, v1.RunFilter{})
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	r.completed(r.Ended(runs[0]))
	if second := r.c.BootID(); second == first || r.c.Boots() != 2 {
		t.Errorf("boot ids %s and %s, %d boots", first, second, r.c.Boots())
	}
	r.has("appliance 2.0", "appliance-kernel 2.0")
	if said := r.c.Must("systemctl is-active appliance"); said != "active\n" {
		t.Errorf("appliance is %q", said)
	}
	out := terraform.Run(t, 0, "apply", "-auto-approve", "-no-color", "-var", "release=2.0")
	if !strings.Contains(out, `"h01" = "2.0"`) || !strings.Contains(out, "0 added, 0 changed, 0 destroyed") {
		t.Errorf("Terraform tells\n%s", out)
	}
}

// play executes the commands of a session: those of the operator here, and those of h01
// on that machine.
func (r *rig) play(terraform *acctest.Workspace, commands []recording.Command) (printed []string) {
	r.t.Helper()
	programs := filepath.Dir(realhost.Program(r.t, "0.0.1"))
	if err := os.Symlink(acctest.CLI(r.t), filepath.Join(programs, "terraform")); err != nil {
		r.t.Fatal(err)
	}
	for _, command := range commands {
		if command.Prompt != "$ " {
			printed = append(printed, r.c.Must(command.Text))
			continue
		}
		shell := exec.CommandContext(r.t.Context(), "bash", "-o", "pipefail", "-c", command.Text) //nolint:gosec // our own guide
		shell.Dir, shell.Env = terraform.Dir, append(os.Environ(), terraform.Env...)
		shell.Env = append(shell.Env, "TF_CLI_ARGS=-no-color", "PATH="+programs+":"+os.Getenv("PATH"))
		out, err := shell.CombinedOutput()
		if err != nil {
			r.t.Fatalf("%s: %v\n%s", command.Text, err, out)
		}
		printed = append(printed, string(out))
	}
	return printed
}
