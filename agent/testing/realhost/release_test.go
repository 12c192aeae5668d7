package realhost_test

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestRealRelease takes a host from Debian 12 to Debian 13 in one run, with its reboot.
func TestRealRelease(t *testing.T) {
	realhost.Need(t, realhost.Long, realhost.Bookworm, realhost.TrixieArchives)
	t.Parallel()
	site := realhost.NewSite(t)
	repository := realhost.NewRepository(t)
	repository.AddSuite("bookworm", "")
	repository.AddSuite("trixie", realhost.TrixieArchives.Archives())
	c := realhost.NewContainer(t, realhost.ContainerOptions{Size: "3g"})
	c.WriteFile("/etc/apt/keyrings/debian.asc", string(repository.Key()))
	c.WriteFile("/etc/apt/sources.list", "deb [signed-by=/etc/apt/keyrings/debian.asc] http://"+c.Reach(repository.Address())+"/ bookworm main\n")
	site.AddHost(c, "h01", map[string]string{"strategy": "apt", "apt-removals": "allow"})
	c.Start()
	c.Must("apt-get -q update")
	site.Online("h01")
	first := c.BootID()
	installs := v1.Release{Packages: &release.Packages{Distribution: "trixie"}}
	if _, err := client.ReleaseNamed("trixie").Put(t.Context(), site.Client, realhost.Tenant, client.Stored[v1.Release]{}, installs, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	run, err := site.Client.Start(t.Context(), realhost.Tenant, v1.Start{OverrideWindow: true, Reason: "a test", Release: "trixie"})
	if err != nil {
		t.Fatal(err)
	}
	run = site.Ended(run)
	if run.Result != "completed" {
		t.Fatalf("the run ended as %s: %s: %+v", run.Result, run.Reason, run.Hosts)
	}
	if c.BootID() == first {
		t.Error("it did not boot")
	}
	said := c.Must(". /etc/os-release; echo $VERSION_CODENAME; cat /etc/apt/sources.list; dpkg --audit; apt-get -s dist-upgrade | grep -c ^Inst || true; systemctl show -P Version")
	t.Log(said)
	if !strings.HasPrefix(said, "trixie\n") || !strings.Contains(said, "/ trixie main\n0\n257") {
		t.Errorf("the host is %q", said)
	}
}
