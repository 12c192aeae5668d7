package realhost_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestRealRepositories meets repositories that are down, signed by a key that the host
// does not trust, expired, and damaged. Nothing of the host changes, and once they are
// repaired the same host is upgraded.
func TestRealRepositories(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	r := newRig(t, realhost.ContainerOptions{}, appliance("1.0"))
	r.repository.Add(appliance("2.0"))
	for _, fault := range []struct {
		fault realhost.Fault
		class string
		says  []string
	}{
		{realhost.WrongKey, "repository", []string{"NO_PUBKEY", "check the key of the repository"}},
		{realhost.Expired, "repository", []string{"is expired", "check the clock of this host"}},
		{realhost.Damaged, "artifact", []string{"Hash Sum mismatch", "check the repository or the cache"}},
	} {
		r.repository.Break(fault.fault)
		r.fails(fault.class, fault.says...)
		r.has("appliance 1.0")
	}
	r.repository.Break(realhost.None)
	r.upgraded()
	r.has("appliance 2.0")
}

// TestRealRepositoryDown meets a repository that is out of order and comes back: the
// host waits for it inside its action and tells so, and the same run completes.
func TestRealRepositoryDown(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	r := newRig(t, realhost.ContainerOptions{}, appliance("1.0"))
	r.repository.Add(appliance("2.0"))
	r.repository.Break(realhost.Down)
	run := r.Begin()
	r.tells(run, "503", "check the network and the repository", "it is tried again")
	r.has("appliance 1.0")
	r.repository.Break(realhost.None)
	r.completed(r.Ended(run))
	r.has("appliance 2.0")
}

// TestRealHeld upgrades a host with a held package and with a configuration file that
// was changed on it: both stay, and both are told, the held one by the plan of the run.
func TestRealHeld(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	r := newRig(t, realhost.ContainerOptions{}, appliance("1.0"), held("1.0"))
	r.c.Must("apt-mark hold appliance-held; echo setting=mine >/etc/appliance.conf")
	r.repository.Add(appliance("2.0"), held("2.0"))
	run := r.upgraded()
	r.has("appliance 2.0", "appliance-held 1.0")
	if got := r.c.Must("cat /etc/appliance.conf /etc/appliance.conf.dpkg-dist"); got != "setting=mine\nsetting=2.0\n" {
		t.Errorf("the configuration is %q", got)
	}
	plan, err := r.Client.Plan(t.Context(), realhost.Tenant, run.ID, "h01")
	if err != nil {
		t.Fatal(err)
	}
	if want := []v1.HeldPackage{{Package: "appliance-held", Version: "1.0", Offered: "2.0", Reason: "held by apt-mark"}}; !slices.Equal(plan.Held, want) {
		t.Errorf("the plan holds %+v, want %+v", plan.Held, want)
	}
	if said, code := r.Command("runs", number(run.ID), "--host", "h01"); code != 0 || !slices.Contains(strings.Split(squeeze(said), "\n"), "appliance-held 1.0 2.0 held by apt-mark") {
		t.Errorf("the operator is shown\n%s", said)
	}
	printed, err := r.Client.Output(t.Context(), realhost.Tenant, run.ID, "h01")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(printed, func(s v1.ActionOutput) bool {
		return strings.Contains(s.Output, "configuration file /etc/appliance.conf was kept as it was")
	}) {
		t.Errorf("nobody is told of the configuration: %+v", printed)
	}
}

// TestRealBrokenPostinst upgrades to a package that cannot be configured: the run fails
// with the words of dpkg and of the script, the host goes back to what it had and keeps to it, and a
// release that is repaired is installed.
func TestRealBrokenPostinst(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	next := func(version, postinst string) []realhost.Deb {
		return []realhost.Deb{appliance(version), {Name: "appliance-broken", Version: version, Scripts: map[string]string{"postinst": postinst}}}
	}
	r := newRig(t, realhost.ContainerOptions{}, next("1.0", "")...)
	r.repository.Add(next("2.0", "echo 'appliance-broken: not today' >&2; exit 3\n")...)
	r.fails("install", "appliance-broken: installed appliance-broken package post-installation script subprocess returned error exit status 3, after it printed: appliance-broken: not today", "rolled back")
	r.has("appliance 1.0", "appliance-broken 1.0")
	r.repository.Add(next("2.1", "")...)
	r.upgraded()
	r.has("appliance 2.1", "appliance-broken 2.1")
}

// TestRealLock begins a run while an apt of a person is at work, which holds dpkg's
// locks: the run waits for it, tells of it, and goes on.
func TestRealLock(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	r := newRig(t, realhost.ContainerOptions{}, appliance("1.0"))
	other := realhost.NewRepository(t)
	other.Publish(realhost.Deb{Name: "tool", Version: "1.0"})
	realhost.AddRepository(r.c, "other", other)
	r.repository.Add(appliance("2.0"))
	r.c.Must("apt-get -q update")
	other.Hold(true)
	r.c.Must("systemd-run -q --unit slow-apt -E DEBIAN_FRONTEND=noninteractive apt-get -q -y install tool")
	realhost.Until(t, "apt downloads", patience, func() bool { return strings.Contains(strings.Join(other.Asked(), " "), "pool/tool") })
	run := r.Begin()
	r.tells(run, "waiting: process", "(apt-get) holds /var/lib/dpkg/lock", "it was started by slow-apt.service")
	other.Hold(false)
	r.completed(r.Ended(run))
	r.has("appliance 2.0", "tool 1.0")
}

// TestRealDiskFull upgrades a host whose disk is full: it fails before anything changes,
// and completes once there is room.
func TestRealDiskFull(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	large := func(version string) realhost.Deb {
		d := appliance(version)
		d.Files["usr/share/appliance/large"] = strings.Repeat(version, 8<<20/len(version))
		return d
	}
	r := newRig(t, realhost.ContainerOptions{Size: "160m"}, large("1.0"))
	r.repository.Add(large("2.0"))
	r.c.Must("head -c 1000m /dev/zero >/var/filler || true; truncate -s -6M /var/filler")
	r.fails("space", "make room on this disk")
	r.has("appliance 1.0")
	r.c.Must("rm /var/filler")
	r.upgraded()
	r.has("appliance 2.0")
}
