//go:build !worker

package cli

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestUnknownApplication checks when the application of a join token is asked about.
func TestUnknownApplication(t *testing.T) {
	t.Parallel()
	listed := v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "appliance"}, {Name: "kiosk"}}}
	hosts := []v1.Host{{Hostname: "h01", Application: "db"}, {Hostname: "h02", Application: "appliance"}, {Hostname: "h03", Application: "db"}}
	for _, row := range []struct {
		name   string
		config v1.OSUpgrade
		hosts  []v1.Host
		want   string
	}{
		{"kiosk", listed, hosts, ""},
		{"db", listed, hosts, ""},
		{"web", v1.OSUpgrade{}, nil, ""},
		{"web", listed, hosts, "tenant acme has no application web: its configuration lists appliance, kiosk, its hosts have appliance, db"},
		{"web", listed, nil, "tenant acme has no application web: its configuration lists appliance, kiosk, its hosts have none"},
		{"web", v1.OSUpgrade{}, hosts, "tenant acme has no application web: its configuration lists none, its hosts have appliance, db"},
	} {
		if got := unknownApplication("acme", row.name, row.config, row.hosts); got != row.want {
			t.Errorf("%s is asked about as %q, not %q", row.name, got, row.want)
		}
	}
}

// TestJoinTokenForUnknownApplication makes join tokens at a site with hosts.
func TestJoinTokenForUnknownApplication(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Tenant: "acme", Hosts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	create := func(more ...string) (int, string) {
		code, stdout, stderr := call(t, append([]string{"credentials", "join-token", "create", "--data", dir, "--tenant", "acme", "--host", "h01"}, more...)...)
		return code, stdout + stderr
	}
	if code, got := create("--application", dev.Application); code != exitOK {
		t.Errorf("of a known application: exit code %d:\n%s", code, got)
	}
	if code, got := create("--application", "web"); code != exitUsage || !strings.Contains(got, "Tenant acme has no application web: its configuration lists ") || !strings.Contains(got, "To go ahead, add --yes.") {
		t.Errorf("of an unknown application: exit code %d:\n%s", code, got)
	}
	if code, got := create("--application", "web", "--yes"); code != exitOK {
		t.Errorf("with --yes: exit code %d:\n%s", code, got)
	}
}
