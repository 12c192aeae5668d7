package realhost_test

import (
	"context"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// TestRealContainer boots a container, upgrades a package from a signed repository,
// reboots it and cuts its power.
func TestRealContainer(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	repository := realhost.NewRepository(t)
	repository.Publish(realhost.Deb{Name: "appliance", Version: "1.0", Files: map[string]string{"usr/share/appliance/version": "1.0\n"}})
	c := realhost.NewContainer(t, realhost.ContainerOptions{Hostname: "h07"})
	realhost.AddRepository(c, "appliance", repository)
	c.Start()
	first := c.BootID()
	if name := strings.TrimSpace(c.Must("hostname")); name != "h07" {
		t.Errorf("its name is %q", name)
	}
	c.Must("apt-get -q -o APT::Update::Error-Mode=any update && apt-get -q -y install appliance")
	repository.Publish(realhost.Deb{Name: "appliance", Version: "2.0", Files: map[string]string{"usr/share/appliance/version": "2.0\n"}})
	c.Must("apt-get -q -o APT::Update::Error-Mode=any update && apt-get -q -y dist-upgrade")
	c.Must("systemctl reboot")
	realhost.Until(t, "a new boot", patience, func() bool { return c.Boots() == 2 })
	second := c.BootID()
	c.Cut()
	if c.On() {
		t.Error("it is on after a power cut")
	}
	c.Start()
	if third := c.BootID(); first == second || second == third {
		t.Errorf("boot ids %s, %s, %s", first, second, third)
	}
	if version := c.Must("dpkg-query -W -f '${db:Status-Abbrev}${Version}' appliance; cat /usr/share/appliance/version"); version != "ii 2.02.0\n" {
		t.Errorf("appliance is %q", version)
	}
}

// TestRealUnsyncedIsLost cuts the power of a container that loses what was not synced, right after
// it has written a file with sync and one without. A reboot loses neither.
func TestRealUnsyncedIsLost(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	c := realhost.NewContainer(t, realhost.ContainerOptions{})
	c.WriteFile("/srv/before", "before ")
	c.LosesUnsynced()
	c.Start()
	// Another test may sync all file systems of this machine at the moment of a cut.
	realhost.Strike(t, "cut after a write without sync", 1, func(int) bool {
		c.Must("printf 'synced ' >/srv/synced; sync /srv/synced; printf written >/srv/written")
		c.Cut()
		c.Start()
		files := c.Must("cat /srv/*; rm -f /srv/written")
		if !strings.HasPrefix(files, "before synced ") {
			t.Fatalf("after the cut the files have %q", files)
		}
		return files == "before synced "
	})
	boots := c.Boots()
	c.Must("printf again >/srv/again; systemctl reboot")
	realhost.Until(t, "a new boot", patience, func() bool { return c.Boots() == boots+1 })
	c.BootID()
	if file := c.Must("cat /srv/again"); file != "again" {
		t.Errorf("after the reboot the file has %q", file)
	}
}

// TestRealContainersAreApart starts two containers of one name at once, as tests do that
// run in parallel. A service of one has no control group in the other: the systemd of the
// other would remove it while the service starts.
func TestRealContainersAreApart(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	one, other := realhost.NewContainer(t, realhost.ContainerOptions{}), realhost.NewContainer(t, realhost.ContainerOptions{})
	one.Start()
	other.Start()
	const group = "find /sys/fs/cgroup -type d -name only-here.service"
	one.Must("systemd-run -q --unit only-here sleep infinity")
	if found := one.Must(group); found == "" {
		t.Error("the service has no control group")
	}
	if found := other.Must(group); found != "" {
		t.Errorf("in the other container there is\n%s", found)
	}
}

// TestRealCommandIsStopped has a command in a container stopped, as each process is while the
// container goes down: it goes on, and holds nothing up.
func TestRealCommandIsStopped(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	c := realhost.NewContainer(t, realhost.ContainerOptions{})
	c.Start()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if out, err := c.Run(ctx, "kill -STOP $$; echo on"); err != nil || out != "on\n" {
		t.Errorf("it prints %q: %v", out, err)
	}
}
