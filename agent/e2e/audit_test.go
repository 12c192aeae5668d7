package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestAuditGuide executes all commands of the guide in their order, against a site in whose
// audit log there is something, and checks that it tells each result.
func TestAuditGuide(t *testing.T) {
	t.Parallel()
	guide := read(t, "../../docs/guides/audit.md")
	for _, word := range []string{v1.AuditDone, v1.AuditRefused, v1.AuditFailed, v1.AuditUnknown, v1.AuditMachine} {
		if !strings.Contains(guide, "`"+word+"`") {
			t.Errorf("the guide does not tell of %s", word)
		}
	}
	dir, root := t.TempDir(), t.TempDir()
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	token, err := d.Tokens.Add(principal.Token{Name: "ann", Tenant: "acme", Allow: []string{access.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", root+"/osupgrade-agent", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
	script := `echo 'config: {worker-applications: [{name: appliance}]}' | osupgrade-agent apply -f - >/dev/null
osupgrade-agent credentials token --tenant acme --name ci >/dev/null
`
	showGuide(t, root, script+commandsOf(t, "audit"),
		[]string{"OSUPGRADE_DATA=" + dir, "OSUPGRADE_ENDPOINT=" + d.Endpoint, "OSUPGRADE_TENANT=acme", "OSUPGRADE_TOKEN=" + token, "PATH=" + root + ":" + os.Getenv("PATH")},
		"token ann  127.0.0.1  write   config ", "local      create  token/", "  config by token ann from 127.0.0.1:", "  + worker-applications:", "<109>1 ")
}
