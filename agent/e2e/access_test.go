package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
)

// TestAccessGuide executes all commands of the guide in their order, on the folder of a
// site that runs, and checks that it tells each role.
func TestAccessGuide(t *testing.T) {
	t.Parallel()
	guide := read(t, "../../docs/guides/access.md")
	for _, role := range access.Roles() {
		if !strings.Contains(guide, "`"+role+"`") {
			t.Errorf("the guide does not tell of %s", role)
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
	build := exec.CommandContext(t.Context(), "go", "build", "-o", root+"/osupgrade-agent", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
	showGuide(t, root, commandsOf(t, "access"),
		[]string{"OSUPGRADE_DATA=" + dir, "OSUPGRADE_ENDPOINT=" + d.Endpoint, "PATH=" + root + ":" + os.Getenv("PATH"), "XDG_CONFIG_HOME=" + root},
		"status:       idle", `"renewal-time"`, "BEGIN:VCALENDAR", "login of the approle, read write", `"secret-id":"`,
		"Written, in this order: policy night-shift.", "tom   viewer", "Deleted user tom of tenant acme.", "/v1/state/os-upgrade/pause: allow execute (Stop, and wake somebody)",
		"Tenant beta is made and served.", "Tenant beta is removed. Its log is kept", "beta  removed  the API                   Beta Ltd",
		"Logged in to context north as ann.", "*  north  "+d.Endpoint+"  acme    login of ann")
}
