package realhost_test

import (
	"os"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/realhost"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
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

output "versions" {
  value = { for h in data.osupgrade_hosts.all.hosts : h.hostname => h.versions }
}
`

// TestRealApply is the whole way: terraform apply starts a run, a Debian machine is
// upgraded by apt and reboots, and Terraform reads the new versions.
func TestRealApply(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	repository := realhost.NewRepository(t)
	repository.Publish(appliance("1.0"), kernel("1.0"))
	c := installed(t, repository, "appliance appliance-kernel")
	site := realhost.NewSite(t)
	before := c.BootID()
	// The worker comes with the next boot.
	c.Cut()
	site.AddHost(c, "h01", map[string]string{"scripts": scripts(t, c, "apt")})
	c.Start()
	site.Online("h01")
	first := c.BootID()
	repository.Add(appliance("2.0"), kernel("2.0"))

	server := acctest.Server{Endpoint: site.Endpoint, Token: site.Token, Tenant: realhost.Tenant}
	terraform := acctest.NewWorkspace(t, server.Env()...)
	terraform.Write(t, "main.tf", configuration)
	terraform.Run(t, 0, "apply", "-auto-approve", "-no-color", "-var", "release=2.0")
	runs, err := site.Client.Runs(t.Context(), realhost.Tenant, v1.RunFilter{})
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	run := site.Ended(runs[0])
	if run.Result != "completed" || run.Hosts[0].Status != "upgraded" {
		t.Errorf("the run ended as %s: %s: %+v", run.Result, run.Reason, run.Hosts)
	}
	if second := c.BootID(); second == first || second == before || c.Boots() != 3 {
		t.Errorf("boot ids %s, %s, %s, and %d boots", before, first, second, c.Boots())
	}
	if got := c.Must("dpkg-query -W -f '${db:Status-Abbrev}${Version} ' appliance appliance-kernel; systemctl is-active appliance; dpkg --audit"); got != "ii 2.0 ii 2.0 active\n" {
		t.Errorf("the host has %q", got)
	}
	out := terraform.Run(t, 0, "apply", "-auto-approve", "-no-color", "-var", "release=2.0")
	if !strings.Contains(out, `"appliance" = "2.0"`) || !strings.Contains(out, "0 added, 0 changed, 0 destroyed") {
		t.Errorf("Terraform tells\n%s", out)
	}
}
