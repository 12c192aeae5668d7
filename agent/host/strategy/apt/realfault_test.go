package apt_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// fails checks that an action fails with a class and says something.
func (d *debian) fails(action, class string, says ...string) {
	d.t.Helper()
	got := d.act(action)
	if got.status == 0 || got.status == 10 || got.class != class {
		d.t.Errorf("%s ends with %d and class %q, want %q:\n%s", action, got.status, got.class, class, got.text)
	}
	for _, want := range says {
		if !strings.Contains(got.text, want) {
			d.t.Errorf("%s does not say %q:\n%s", action, want, got.text)
		}
	}
}

// TestRealRepositoryFaults prepares a host whose repository is faulty. Each time the
// class is told and the host stays as it is, and without a fault it goes on.
func TestRealRepositoryFaults(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	d := newDebian(t, simple("appliance", "1.0", ""))
	d.repository.Add(simple("appliance", "2.0", ""))
	for _, row := range []struct {
		fault  realhost.Fault
		class  string
		says   string
		remedy remedy.Remedy
	}{
		{realhost.Down, "transient", "503", remedy.Network},
		{realhost.WrongKey, "repository", "NO_PUBKEY", remedy.AptKey},
		{realhost.Expired, "repository", "is expired", remedy.AptExpired},
		{realhost.Damaged, "artifact", "Hash Sum mismatch", remedy.AptDamaged},
	} {
		d.Must("rm -f /var/cache/apt/archives/*.deb")
		d.repository.Break(row.fault)
		if said := d.left("prepare", row.class, row.remedy); !strings.Contains(said, row.says) {
			t.Errorf("it does not say %q:\n%s", row.says, said)
		}
		d.repository.Break(realhost.None)
		wantPlan(t, d.prepare(), "appliance 1.0 → 2.0")
	}
	for broken, told := range map[string]remedy.Remedy{"s/^/nonsense /": remedy.AptSources, "s|/ ./|/ ./elsewhere/|": remedy.AptAddress} {
		d.Must("cp /etc/apt/sources.list.d/appliance.list /root; sed -i '" + broken + "' /etc/apt/sources.list.d/appliance.list")
		d.left("prepare", "repository", told)
		d.Must("cp /root/appliance.list /etc/apt/sources.list.d/")
		wantPlan(t, d.prepare(), "appliance 1.0 → 2.0")
	}
	// Without lists there is nothing to upgrade, and that must not be told as a plan.
	d.Must("rm -rf /var/lib/apt/lists/*")
	d.fails("plan", "repository", "no lists of packages")
	d.has("ii appliance 1.0")
	wantPlan(t, d.prepare(), "appliance 1.0 → 2.0")
	// An archive that is lost before the upgrade is fetched again. Where that fails, nothing is
	// changed, and nothing is done.
	d.Must("rm /var/cache/apt/archives/*.deb")
	d.repository.Break(realhost.Damaged)
	d.fails("upgrade", "artifact")
	d.has("ii appliance 1.0")
	d.must("resume", 11)
	d.repository.Break(realhost.None)
	d.must("upgrade", 0)
	d.done()
}

// TestRealBrokenScript upgrades a package whose script fails: the others are
// configured, and when it is repaired the upgrade is finished.
func TestRealBrokenScript(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	d := newDebian(t, simple("appliance", "1.0", ""), simple("appliance-broken", "1.0", ""))
	d.repository.Add(simple("appliance", "2.0", ""), simple("appliance-broken", "2.0", `[ -e /etc/fixed ] || { echo "not today" >&2; exit 3; }`))
	d.prepare()
	d.fails("upgrade", "install", "appliance-broken", "returned error exit status 3, after it printed: not today")
	d.has("iF appliance-broken 2.0\nii appliance 2.0")
	d.fails("resume", "install", "dpkg has not finished with appliance-broken", "dpkg --configure -a")
	d.fails("verify", "verify", "dpkg --audit")
	// The next run takes back what this one left broken, and tries it again.
	d.prepare()
	d.has("ii appliance 2.0\nii appliance-broken 1.0")
	d.fails("upgrade", "install", "appliance-broken")
	d.has("iF appliance-broken 2.0\nii appliance 2.0")
	d.Must("touch /etc/fixed")
	d.must("resume", 0)
	d.done()
}

// TestRealRollback goes back from a package whose script fails, and says so when a
// version is gone.
func TestRealRollback(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	d := newDebian(t, simple("appliance", "1.0", ""), simple("appliance-broken", "1.0", ""))
	broken := simple("appliance-broken", "2.0", "exit 3")
	broken.Fields = []string{"Depends: appliance-new"}
	d.repository.Add(simple("appliance", "2.0", ""), broken, simple("appliance-new", "1.0", ""))
	d.prepare()
	d.fails("upgrade", "install", "exit status 3")
	d.must("rollback", 0)
	d.has("ii appliance 1.0\nii appliance-broken 1.0")
	// A version that was rolled back is held back until there is another one.
	d.rejected = message.Rejected{"appliance-broken": {"2.0"}}
	wantPlan(t, d.prepare(), "appliance 1.0 → 2.0", "appliance-broken stays 1.0, not 2.0: 2.0 was rolled back on this host")
	d.rejected = nil
	d.prepare()
	d.fails("upgrade", "install", "exit status 3")
	d.repository.Publish(simple("appliance", "2.0", ""), broken, simple("appliance-new", "1.0", ""))
	d.Must("apt-get -q update; mkdir /srv/old; mv /var/cache/apt/archives/*_1.0_*.deb /srv/old")
	said := d.must("rollback", 11).text
	if !strings.Contains(said, "has appliance 1.0, appliance-broken 1.0") {
		t.Errorf("it says\n%s", said)
	}
	d.has("iF appliance-broken 2.0\nii appliance 2.0\nii appliance-new 1.0")
	// A person gets the archives and follows the rest of what it says.
	d.Must("mv /srv/old/* /var/cache/apt/archives")
	realhost.Follow(t, d, remedy.AptOldVersions, said)
	d.has("ii appliance 1.0\nii appliance-broken 1.0")
	d.repository.Add(simple("appliance-broken", "3.0", ""))
	d.healed()
	d.has("ii appliance 2.0\nii appliance-broken 3.0")
}

// TestRealSpace prepares a host without room for the download, and upgrades one whose
// disk is full in the midst of the upgrade.
func TestRealSpace(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	big := func(version string) realhost.Deb {
		d := simple("appliance", version, "")
		for i := range 8 {
			d.Files[fmt.Sprintf("usr/share/appliance/%d", i)] = strings.Repeat(version, 1<<18)
		}
		return d
	}
	d := newDebian(t, big("1.0"))
	d.repository.Add(big("2.0"))
	d.Must("mount -t tmpfs -o size=2m archives /var/cache/apt/archives")
	d.fails("prepare", "space", "the upgrade needs ", "MiB in /var/cache/apt/archives")
	d.left("prepare", "space", remedy.Room)
	d.has("ii appliance 1.0")
	d.Must("umount /var/cache/apt/archives")
	d.prepare()
	d.Must("cp -a /usr/share/appliance /root; mount -t tmpfs -o size=9m full /usr/share/appliance; cp -a /root/appliance/. /usr/share/appliance")
	d.fails("upgrade", "space", "No space left on device")
	d.Must("mount -o remount,size=99m /usr/share/appliance")
	if got := d.act("resume"); got.status == 11 {
		d.must("upgrade", 0) // dpkg went back by itself, so nothing was changed.
	} else if got.status != 0 {
		t.Fatalf("resume ends with %d:\n%s", got.status, got.text)
	}
	d.done()
}

// TestRealLock upgrades while a real and slow apt holds the lock: the holder is named,
// and when it ends the upgrade goes on.
func TestRealLock(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	d := newDebian(t, simple("appliance", "1.0", ""))
	d.repository.Add(simple("appliance", "2.0", ""), simple("slow", "1.0", "touch /run/slow; while [ -e /run/slow ]; do sleep 0.1; done"))
	d.prepare()
	d.Must("mkfifo /run/hold 2>/dev/null; systemd-run --quiet --unit slow env DEBIAN_FRONTEND=noninteractive apt-get -q -y install slow")
	realhost.Until(t, "the slow apt is at work", time.Minute, func() bool { return strings.TrimSpace(d.Must("ls /run/slow 2>/dev/null || true")) != "" })
	d.options["LockLimit"] = "1s"
	d.fails("upgrade", "lock", "(apt-get) holds /var/lib/dpkg/lock-frontend; it was started by slow.service", "apt-lock-limit")
	d.left("upgrade", "lock", remedy.WaitOrRaise)
	d.has("ii appliance 1.0")
	d.options["LockLimit"] = "1m"
	d.begin()
	d.says("waiting: process ")
	d.Must("rm /run/slow")
	d.says("ended\n")
	d.done()
}

// TestRealModes plans each mode on a host with updates of every kind.
func TestRealModes(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	d := newDebian(t, simple("appliance", "1.0", ""), simple("appliance-client", "1.0", ""), simple("appliance-old", "1.0", ""), simple("appliance-needy", "1.0", ""))
	client, needy := simple("appliance-client", "2.0", ""), simple("appliance-needy", "2.0", "")
	client.Fields, needy.Fields = []string{"Depends: appliance-lib\nConflicts: appliance-old"}, []string{"Depends: no-such-lib"}
	d.repository.Add(simple("appliance", "1.5", ""), simple("appliance", "2.0", ""), client, needy, simple("appliance-lib", "2.0", ""))
	security := realhost.NewRepository(t)
	security.Describe(realhost.Release{Origin: "Appliance", Label: "Appliance-Security", Suite: "stable-security", Codename: "works-security"})
	security.Publish(simple("appliance", "1.1", ""))
	realhost.AddRepository(d, "security", security)

	held := []string{
		"appliance-client stays 1.0, not 2.0: with it apt would remove appliance-old, and apt-removals is refuse",
		"appliance-needy stays 1.0, not 2.0: apt cannot upgrade it now: its dependencies are not met",
	}
	wantPlan(t, d.prepare(), append([]string{"appliance 1.0 → 2.0"}, held...)...)
	d.options["Removals"] = "allow"
	wantPlan(t, d.prepare(), "appliance 1.0 → 2.0", "appliance-client 1.0 → 2.0", "appliance-lib 2.0 (new)", "appliance-old 1.0 (removed)", held[1])
	d.options["Mode"] = "security"
	wantPlan(t, d.prepare(), "appliance 1.0 → 1.1", "appliance-client stays 1.0, not 2.0: not a security update", "appliance-needy stays 1.0, not 2.0: not a security update")
	d.options["Mode"], d.options["Packages"] = "packages", []string{"appliance-c*", "appliance=1.5"}
	wantPlan(t, d.prepare(), "appliance 1.0 → 1.5", "appliance-client 1.0 → 2.0", "appliance-lib 2.0 (new)", "appliance-old 1.0 (removed)")
	d.must("upgrade", 0)
	d.done()
	d.has("ii appliance 1.5\nii appliance-client 2.0\nii appliance-lib 2.0\nii appliance-needy 1.0")
	d.options["Packages"] = []string{"appliance=1.1"}
	wantPlan(t, d.prepare(), "appliance 1.5 → 1.1")
	d.must("upgrade", 0)
	d.done()
	d.options["Packages"] = []string{"appliance=9"}
	d.fails("prepare", "repository", "Version '9' for 'appliance' was not found")
	d.options["Packages"] = []string{"appliance-client=1.0", "appliance-needy"}
	d.fails("prepare", "install", "no-such-lib")
	d.options["Packages"] = []string{"nothing-like-this"}
	d.fails("prepare", "install", "nothing-like-this is not installed")

	// The sources of a snapshot count instead of those of /etc/apt, whose lists stay.
	snapshot := realhost.NewRepository(t)
	snapshot.Publish(simple("appliance", "1.2", ""))
	d.WriteFile("/etc/osupgrade/snapshot.list", fmt.Sprintf("deb [signed-by=/etc/apt/keyrings/appliance.asc] http://%s/ ./\n", snapshot.Address()))
	d.options["Mode"], d.options["Sources"] = "all", "/etc/osupgrade/snapshot.list"
	delete(d.options, "Packages")
	wantPlan(t, d.prepare(), "appliance 1.1 → 1.2")
	d.must("upgrade", 0)
	d.done()
	if got := d.Must("apt-cache policy appliance | grep Candidate"); !strings.Contains(got, "2.0") {
		t.Errorf("the lists of the host itself: %s", got)
	}
}

// TestRealQuestion upgrades packages whose scripts ask: by debconf with the highest priority, the
// standard input, and the terminal. Nobody is there, so each goes on with what it has.
func TestRealQuestion(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	const question = `cat >/run/templates <<'END'
Template: appliance/colour
Type: string
Default: green
Description: Which colour?
END
. /usr/share/debconf/confmodule
db_x_loadtemplatefile /run/templates appliance
db_fset appliance/colour seen false
db_input critical appliance/colour || true
db_go || true
db_get appliance/colour
echo "$RET" >/var/colour
`
	const reads = `read answer || true; echo "input $answer" >/var/input; (read answer </dev/tty) 2>/dev/null || true; echo terminal >>/var/input
`
	d := newDebian(t, simple("appliance", "1.0", ""), simple("appliance-other", "1.0", ""))
	d.repository.Add(simple("appliance", "2.0", question), simple("appliance-other", "2.0", reads))
	d.prepare()
	d.must("upgrade", 0)
	d.done()
	d.has("ii appliance 2.0\nii appliance-other 2.0")
	if got := d.Must("cat /var/colour /var/input"); got != "green\ninput \nterminal\n" {
		t.Errorf("the scripts got %q", got)
	}
}

// TestRealTornLists loses all or a part of a list whose Release is whole, as a power cut does. apt-get
// update does not fetch it again: it says that nothing is new. The host does not count as up to date, and
// the next prepare fetches the list. A compressed list that is not whole apt cannot even read: a person
// mends that.
func TestRealTornLists(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	d := newDebian(t, simple("appliance", "1.0", ""))
	d.repository.Publish(simple("appliance", "2.0", ""))
	const lists = "/var/lib/apt/lists/*_Packages"
	d.Must("apt-get -q update")
	for _, size := range []string{"0", "200"} {
		if said := d.Must("truncate -s " + size + " " + lists + " && apt-get -q update && stat -c 'has %s' " + lists); !strings.HasSuffix(said, "has "+size+"\n") {
			t.Errorf("apt itself fetches the list again: %s", said)
		}
		d.fails("plan", "repository", "_Packages is not what its Release says")
		wantPlan(t, d.prepare(), "appliance 1.0 → 2.0")
	}
	d.WriteFile("/etc/apt/apt.conf.d/kept", "Acquire::GzipIndexes \"true\";\n")
	d.Must("rm " + lists + "; apt-get -q update; ls " + lists + ".lz4")
	wantPlan(t, d.prepare(), "appliance 1.0 → 2.0")
	d.Must("truncate -s 0 " + lists + ".lz4")
	d.heals("prepare", "repository", remedy.AptUnreadable)
}
