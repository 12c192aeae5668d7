package apt_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// left has an action fail with a class and a remedy, and returns what was printed.
func (d *debian) left(action, class string, r remedy.Remedy) string {
	d.t.Helper()
	got := d.act(action)
	if got.status == 0 || got.status == 10 || got.class != class {
		d.t.Fatalf("%s ends with %d of class %q, want %q:\n%s", action, got.status, got.class, class, got.text)
	}
	realhost.Remedy(d.t, r, got.text)
	return got.text
}

// healed has the next run upgrade the host.
func (d *debian) healed() {
	d.t.Helper()
	d.whole()
	d.prepare()
	d.must("upgrade", 0)
	d.done()
}

// whole checks that dpkg has finished with all packages.
func (d *debian) whole() {
	d.t.Helper()
	if audit := d.Must("dpkg --audit"); audit != "" {
		d.t.Errorf("the audit says: %s", audit)
	}
}

// heals has an action fail with a remedy, follows that, and has the next run upgrade the host.
func (d *debian) heals(action, class string, r remedy.Remedy) {
	d.t.Helper()
	realhost.Follow(d.t, d, r, d.left(action, class, r))
	d.healed()
}

// holding are packages of which the third and the last, on which none depends, wait in their
// preinst while /run/hold is there.
func holding(version string) []realhost.Deb {
	alone := simple("appliance-alone", version, "")
	debs := append(family(version), alone)
	for _, i := range []int{2, 4} {
		debs[i].Scripts = map[string]string{"preinst": "touch /run/here; while [ -e /run/hold ]; do sleep 0.1; done\n"}
	}
	return debs
}

// othersKilled has a person install a package, and kills that in the midst of its unpacking.
func (d *debian) othersKilled(name string) {
	d.t.Helper()
	d.Must("apt-get -q update; touch /run/hold; rm -f /run/here; (setsid apt-get -q -y install " + name + " >/dev/null 2>&1) >/dev/null 2>&1 </dev/null &")
	realhost.UntilOn(d.t, d, "the unpacking", time.Minute, func() bool { return strings.TrimSpace(d.Must("ls /run/here 2>/dev/null || true")) != "" })
	d.Must("pkill -9 -x apt-get; pkill -9 -x dpkg; rm /run/hold")
}

// withoutArchives are an own upgrade that was cut off, archives that are lost, and a repository that has
// only some packages of a later version.
func (d *debian) withoutArchives() {
	d.t.Helper()
	d.prepare()
	d.killDpkg()
	d.Must("mkdir /srv/lost; mv /var/cache/apt/archives/*.deb /srv/lost")
	d.repository.Publish(family("3.0")[:2]...)
}

// states are those of hosts that only a person may repair, with how they are repaired.
var states = []struct {
	name string
	test func(d *debian)
}{
	{"others unpacked packages and did not configure them", func(d *debian) {
		d.Must("cd /var/cache/apt/archives && apt-get -q update && apt-get -q -y -d install appliance-3 && dpkg --unpack appliance-*_2.0_all.deb")
		d.repository.Add(family("3.0")...)
		d.heals("prepare", "install", remedy.AptConfigure)
	}},
	{"dpkg of others was killed while it unpacked", func(d *debian) {
		d.othersKilled("appliance-3")
		d.repository.Add(holding("3.0")...)
		d.heals("prepare", "install", remedy.AptReinstall)
	}},
	{"the same and a plan tells it first", func(d *debian) {
		d.othersKilled("appliance-3")
		d.Must("dpkg --configure -a || true")
		d.heals("plan", "install", remedy.AptReinstall)
	}},
	{"an own upgrade was cut off and a plan tells it first", func(d *debian) {
		d.prepare()
		d.killDpkg()
		d.Must("dpkg --configure -a || true")
		d.left("plan", "install", remedy.AptNextRun)
		d.prepare()
		d.must("upgrade", 0)
		d.done()
	}},
	{"dpkg of others is killed while the host is prepared", func(d *debian) {
		d.WriteFile("/srv/appliance-alone.deb", string(holding("2.0")[4].Build()))
		d.WriteFile("/srv/kill", "#!/bin/sh\ntouch /run/hold; rm -f /run/here\n(setsid dpkg -i /srv/appliance-alone.deb >/dev/null 2>&1) >/dev/null 2>&1 </dev/null &\nuntil [ -e /run/here ]; do sleep 0.1; done; pkill -9 -x dpkg; rm /run/hold\n")
		d.WriteFile("/etc/apt/apt.conf.d/99kill", `APT::Update::Post-Invoke {"/srv/kill";};`)
		d.left("prepare", "install", remedy.AptInterrupted)
		d.Must("rm /etc/apt/apt.conf.d/99kill")
		d.heals("prepare", "install", remedy.AptReinstall)
	}},
	{"dpkg of others was killed while it unpacked a package that none needs", func(d *debian) {
		d.othersKilled("appliance-alone")
		d.heals("prepare", "install", remedy.AptReinstall)
	}},
	{"the same and its old version is in no repository", func(d *debian) {
		d.othersKilled("appliance-alone")
		d.Must("rm -f /var/cache/apt/archives/*.deb")
		d.repository.Publish(holding("3.0")...)
		d.heals("prepare", "install", remedy.AptReinstall)
	}},
	{"the same and no version of it is in a repository", func(d *debian) {
		d.othersKilled("appliance-alone")
		d.Must("rm -f /var/cache/apt/archives/*.deb")
		d.repository.Publish(holding("3.0")[:4]...)
		d.Must("apt-get -q update")
		d.heals("prepare", "install", remedy.AptGone)
		d.has(strings.ReplaceAll(upgraded, "2.0", "3.0"))
	}},
	{"dpkg of others was killed between prepare and upgrade", func(d *debian) {
		d.prepare()
		d.othersKilled("appliance-alone")
		d.heals("upgrade", "install", remedy.AptReinstall)
	}},
	{"an own upgrade lost an archive while no repository answers", func(d *debian) {
		d.prepare()
		d.killDpkg()
		d.Must("rm -f /var/cache/apt/archives/*.deb")
		d.repository.Break(realhost.Down)
		said := d.left("resume", "transient", remedy.AptReinstall)
		realhost.Remedy(d.t, remedy.Network, said)
		d.repository.Break(realhost.None)
		realhost.Follow(d.t, d, remedy.AptReinstall, said)
		d.healed()
	}},
	{"an own upgrade was cut off and the repository has gone on", func(d *debian) {
		d.prepare()
		d.killDpkg()
		d.repository.Publish(holding("3.0")...)
		d.Must("apt-get -q update")
		d.must("resume", 0)
		d.done()
	}},
	{"an own upgrade lost an archive that no repository has", func(d *debian) {
		d.withoutArchives()
		said := d.left("resume", "install", remedy.AptGone)
		if strings.Contains(said, "prepare the host again\",") {
			d.t.Errorf("it also says what does not help:\n%s", said)
		}
		realhost.Follow(d.t, d, remedy.AptGone, said)
		d.healed()
		d.has("ii appliance-0 3.0\nii appliance-1 3.0\nii appliance-alone 1.0")
	}},
	{"the same and the repository offers it again", func(d *debian) {
		d.withoutArchives()
		d.left("prepare", "install", remedy.AptGone)
		d.repository.Add(holding("2.0")...)
		d.prepare()
		d.must("upgrade", 0)
		d.done()
	}},
	{"the same and to complete what is unpacked apt would remove it", func(d *debian) {
		d.withoutArchives()
		d.Must("dpkg --unpack /srv/lost/appliance-2_2.0_all.deb")
		realhost.Follow(d.t, d, remedy.AptConfigure, d.left("prepare", "install", remedy.AptConfigure))
		d.healed()
		d.has("ii appliance-0 3.0\nii appliance-1 3.0\nii appliance-alone 1.0")
	}},
	{"others installed a package without what it needs", func(d *debian) {
		needy := simple("appliance-needy", "1.0", "")
		needy.Fields = []string{"Depends: no-such-lib"}
		d.WriteFile("/srv/needy.deb", string(needy.Build()))
		d.Must("dpkg -i --force-depends /srv/needy.deb")
		d.heals("prepare", "install", remedy.AptBroken)
	}},
	{"an own upgrade was killed", func(d *debian) {
		d.prepare()
		d.killDpkg()
		if why := d.Must(realhost.Remedy(d.t, remedy.AptKilled, d.Must("cat /var/out"))); why == "" {
			d.t.Error("the command prints nothing")
		}
		d.prepare()
		d.must("upgrade", 0)
		d.done()
	}},
	{"the lists are gone", func(d *debian) {
		d.Must("rm -rf /var/lib/apt/lists/*")
		d.heals("plan", "repository", remedy.AptLists)
	}},
	{"the sums of the archives are damaged", func(d *debian) {
		d.prepare()
		d.Must("echo x >$(find /var/lib/osupgrade-worker -name sums.json)")
		d.left("upgrade", "install", remedy.PrepareAgain)
		d.healed()
	}},
	{"others installed a package that needs the old version", func(d *debian) {
		user := simple("appliance-user", "1.0", "")
		user.Fields = []string{"Depends: appliance-alone (= 1.0)"}
		d.prepare()
		d.WriteFile("/srv/user.deb", string(user.Build()))
		d.Must("dpkg -i /srv/user.deb")
		d.left("upgrade", "install", remedy.PrepareAgain)
		d.healed()
		d.has(strings.Replace(upgraded, "\nii appliance-3 2.0", "\nii appliance-3 2.0\nii appliance-alone 1.0\nii appliance-user 1.0", 1))
	}},
	{"the repository has changed since the host was prepared", func(d *debian) {
		d.prepare()
		d.Must("rm -f /var/cache/apt/archives/*.deb")
		d.repository.Publish(holding("3.0")...)
		d.left("upgrade", "artifact", remedy.AptFetchAgain)
		d.healed()
	}},
	{"a rollback would remove what others installed", func(d *debian) {
		user := simple("appliance-user", "1.0", "")
		user.Fields = []string{"Depends: appliance-alone (= 2.0)"}
		d.prepare()
		d.must("upgrade", 0)
		d.WriteFile("/srv/user.deb", string(user.Build()))
		d.Must("dpkg -i /srv/user.deb")
		realhost.Follow(d.t, d, remedy.AptOthers, d.left("rollback", "install", remedy.AptOthers))
		d.has(strings.ReplaceAll(upgraded, "2.0", "1.0") + "\nii appliance-alone 1.0")
		d.healed()
	}},
}

// TestRealRemedies leaves hosts in states that only a person may repair, and follows what
// the failure prints: the host is healthy then, and the next run upgrades it.
func TestRealRemedies(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	for _, row := range states {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := newDebian(t, append(family("1.0"), simple("appliance-alone", "1.0", ""))...)
			d.repository.Add(holding("2.0")...)
			row.test(d)
		})
	}
}

// TestRealConffileRemedy upgrades packages with a configuration file that was changed here, where
// apt-conffiles leaves the question to dpkg: both ways that the failure tells finish the upgrade.
func TestRealConffileRemedy(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	for name, answer := range map[string]func(d *debian, commands string){
		"the question is answered": func(d *debian, commands string) { d.Must("yes | { " + commands + "; }") },
		"the setting is changed":   func(d *debian, _ string) { d.options["Conffiles"] = "replace" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDebian(t, configured("appliance", "1.0"))
			d.repository.Add(configured("appliance", "2.0"))
			d.options["Conffiles"] = "default"
			d.Must("echo setting=mine >/etc/appliance.conf")
			d.prepare()
			answer(d, realhost.Remedy(t, remedy.AptConffile, d.left("upgrade", "install", remedy.AptConffile)))
			d.must("resume", 0)
			d.done()
			d.has("ii appliance 2.0")
			if got := d.Must("cat /etc/appliance.conf"); got != "setting=2.0\n" {
				t.Errorf("the file is %q", got)
			}
		})
	}
}

// TestRealPackagesRemedies names packages that cannot be installed, and corrects that as the failure says.
func TestRealPackagesRemedies(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	d := newDebian(t, simple("appliance", "1.0", ""))
	needy := simple("appliance-needy", "1.0", "")
	needy.Fields = []string{"Depends: appliance-lib"}
	d.repository.Add(simple("appliance", "2.0", ""), simple("appliance-extra", "1.0", ""), needy)
	d.options["Mode"], d.options["Packages"] = "packages", []string{"appliance=9"}
	d.left("prepare", "repository", remedy.AptNoVersion)
	d.options["Packages"] = []string{"appliance=2.0"}
	d.healed()
	d.options["Packages"] = []string{"appliance-extra"}
	_, word, _ := strings.Cut(d.left("prepare", "install", remedy.AptNotThere), "write ")
	word, _, _ = strings.Cut(word, " ")
	d.options["Packages"] = []string{strings.Replace(word, "VERSION", "1.0", 1)}
	d.healed()
	d.options["Packages"] = []string{"appliance-needy=1.0"}
	d.left("prepare", "install", remedy.AptDependency)
	d.repository.Add(simple("appliance-lib", "1.0", ""))
	d.healed()
	d.has("ii appliance 2.0\nii appliance-extra 1.0\nii appliance-lib 1.0\nii appliance-needy 1.0")
}

// TestRealFileSource upgrades from a folder of this host, whose archives apt does not copy. It may
// change after prepare, as a mounted medium does.
func TestRealFileSource(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	d := newDebian(t, simple("appliance", "1.0", ""), simple("appliance-other", "1.0", ""))
	d.repository.Add(simple("appliance-other", "2.0", ""))
	archive := simple("appliance", "1:2.0~rc", "")
	d.WriteFile("/srv/own folder/appliance.deb", string(archive.Build()))
	d.Must(`cd "/srv/own folder" && { dpkg-deb -f appliance.deb; echo "Filename: ./appliance.deb"; echo "Size: $(stat -c %s appliance.deb)"; echo "SHA256: $(sha256sum appliance.deb | cut -d' ' -f1)"; echo; } >Packages &&
		echo 'deb [trusted=yes] file:/srv/own%20folder ./' >/etc/apt/sources.list.d/own.list`)
	plan := d.prepare()
	wantPlan(t, plan, fmt.Sprintf("appliance 1.0 → %s", archive.Version), "appliance-other 1.0 → 2.0")
	if plan.Download == 0 {
		t.Error("nothing is to be downloaded")
	}
	d.Must(`mv "/srv/own folder" /srv/away`)
	d.must("upgrade", 0)
	d.done()
	d.has("ii appliance " + archive.Version + "\nii appliance-other 2.0")

	// An archive that is lost or damaged comes from there again; without it the failure says where it was.
	d.Must(`mv /srv/away "/srv/own folder"`)
	d.must("rollback", 0)
	d.prepare()
	d.Must("rm /var/cache/apt/archives/*.deb")
	d.must("upgrade", 0)
	d.done()
	d.must("rollback", 0)
	d.prepare()
	d.Must(`rm /var/cache/apt/archives/*.deb "/srv/own folder/appliance.deb"`)
	d.fails("upgrade", "artifact", "File not found - /srv/own folder/./appliance.deb")
}
