package apt_test

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// apart is a package with files in /opt.
func apart(name, version string) realhost.Deb {
	return realhost.Deb{Name: name, Version: version, Files: map[string]string{"opt/" + name + "/version": version + "\n", "opt/" + name + "/data": strings.Repeat(version, 100)}}
}

// TestRealFilesOfBefore is what a power cut leaves where /opt is another file system than
// dpkg's database: dpkg has recorded the new version, and the files have not got their new
// names. Who resumes unpacks them again, and believes no record.
func TestRealFilesOfBefore(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	d := newDebian(t, apart("appliance", "1.0"), apart("appliance-other", "1.0"), apart("appliance-same", "1.0"))
	d.repository.Add(apart("appliance", "2.0"), apart("appliance-other", "2.0"), apart("appliance-same", "2.0"))
	d.prepare()
	d.Must("cp -a /opt /opt.before; cp /var/lib/dpkg/info/appliance-other.md5sums /opt.before/sums")
	d.must("upgrade", 0)
	d.repository.Break(realhost.Down)
	d.Must("mv /opt/appliance/version /opt/appliance/version.dpkg-new; cp -a /opt.before/appliance/version /opt/appliance/; " +
		"cp -a /opt.before/appliance-other/* /opt/appliance-other/; cp /opt.before/sums /var/lib/dpkg/info/appliance-other.md5sums")
	got := d.must("resume", 0)
	if !strings.Contains(got.text, "unpacking again what dpkg has recorded and the disk does not have: appliance=2.0, appliance-other=2.0") {
		t.Errorf("it says\n%s", got.text)
	}
	if has := d.Must("cat /opt/*/version; ls /opt/appliance; dpkg --verify appliance appliance-other appliance-same"); has != "2.0\n2.0\n2.0\ndata\nversion\n" {
		t.Errorf("the files are\n%s", has)
	}
	d.done()
	if got := d.must("resume", 0); strings.Contains(got.text, "repairing") {
		t.Errorf("what is whole is repaired:\n%s", got.text)
	}
	// What something else on this host changes again and again fails nothing.
	d.WriteFile("/etc/apt/apt.conf.d/mine", `DPkg::Post-Invoke { "echo mine >/opt/appliance/version"; };`+"\n")
	d.Must("echo mine >/opt/appliance/version")
	if got := d.must("resume", 0); !strings.Contains(got.text, "files of appliance=2.0 differ from those of their archives") {
		t.Errorf("it says\n%s", got.text)
	}
}

// TestRealDamagedArchive damages an archive after its download, without a change of its
// size, and with one. It is fetched again, and never installed.
func TestRealDamagedArchive(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	d := newDebian(t, apart("appliance", "1.0"), apart("appliance-other", "1.0"))
	d.repository.Add(apart("appliance", "2.0"), apart("appliance-other", "2.0"))
	d.prepare()
	damage := func() {
		d.Must("cd /var/cache/apt/archives && sed -i s/2.02.0/2.03.0/ appliance_2.0_all.deb && f=appliance-other_2.0_all.deb && s=$(stat -c %s $f) && truncate -s 0 $f && truncate -s $s $f")
	}
	damage()
	if plan := d.prepare(); len(plan.Changes) != 2 {
		t.Fatalf("the plan is %+v", plan)
	}
	if has := d.Must("cd /var/cache/apt/archives && sha256sum *.deb | cut -d' ' -f1 | xargs -I{} grep -c {} -r /var/lib/apt/lists --include=*Packages -h || true"); !strings.HasPrefix(has, "1\n1\n") {
		t.Errorf("after prepare the sums are in the lists so often: %s", has)
	}
	damage()
	d.repository.Break(realhost.Down)
	if got := d.act("upgrade"); got.class != "transient" {
		t.Errorf("without its repository the upgrade ends with %d of class %q:\n%s", got.status, got.class, got.text)
	}
	d.has("ii appliance 1.0\nii appliance-other 1.0")
	d.repository.Break(realhost.None)
	d.must("upgrade", 0)
	d.done()
	if has := d.Must("dpkg --verify appliance appliance-other; cat /opt/*/version"); has != "2.0\n2.0\n" {
		t.Errorf("the files are\n%s", has)
	}
}

// TestRealRollbackLeavesOthers has a person install a version between prepare and upgrade.
// The rollback goes back with what the upgrade has changed, and leaves that.
func TestRealRollbackLeavesOthers(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	d := newDebian(t, apart("appliance", "1.0"), apart("appliance-other", "1.0"))
	d.repository.Add(apart("appliance", "2.0"), apart("appliance-other", "2.0"))
	d.prepare()
	d.repository.Add(apart("appliance-other", "3.0"))
	d.Must("apt-get -q update && apt-get -q -y install appliance-other=3.0 appliance=2.0")
	d.must("rollback", 0)
	d.has("ii appliance 1.0\nii appliance-other 3.0")
}

// TestRealNewerLists has a timer fetch newer lists between prepare and upgrade, which do not have
// the planned versions any more: they are installed from the archives of prepare.
func TestRealNewerLists(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	d := newDebian(t, family("1.0")...)
	d.repository.Publish(family("2.0")...)
	d.prepare()
	d.repository.Publish(family("3.0")...)
	d.Must("apt-get -q update")
	d.must("upgrade", 0)
	d.done()
	d.has(upgraded)
}

// killDpkg kills dpkg alone in the midst of an upgrade, as the kernel does when memory is
// short.
func (d *debian) killDpkg() {
	d.t.Helper()
	d.Must("touch /run/hold; rm -f /run/here")
	d.begin()
	realhost.UntilOn(d.t, d, "the third package", time.Minute, func() bool { return strings.TrimSpace(d.Must("ls /run/here 2>/dev/null || true")) != "" })
	d.Must("pkill -9 -x dpkg; rm /run/hold")
	var out string
	realhost.UntilOn(d.t, d, "the end of the upgrade", time.Minute, func() bool {
		out = d.Must("cat /var/out")
		return strings.Contains(out, "ended\n")
	})
	if !strings.Contains(out, `"class":"transient"`) || !strings.Contains(d.Must("dpkg --audit"), "in a mess") {
		d.t.Fatalf("dpkg was killed, and the upgrade ends with\n%s", out)
	}
}

// TestRealDpkgKilled kills dpkg alone. Whatever comes next repairs the host: the upgrade
// that is taken up again, its rollback, or the next run, after which it is upgraded.
func TestRealDpkgKilled(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	d := newDebian(t, family("1.0")...)
	debs := family("2.0")
	debs[2].Scripts["preinst"] = "touch /run/here; while [ -e /run/hold ]; do sleep 0.1; done\n"
	d.repository.Add(debs...)
	d.prepare()
	d.killDpkg()
	d.must("rollback", 0)
	d.has(strings.ReplaceAll(upgraded, "2.0", "1.0"))
	d.prepare()
	d.killDpkg()
	d.prepare()
	d.must("upgrade", 0)
	d.done()
	d.has(upgraded)
	d.must("rollback", 0)
	d.prepare()
	d.killDpkg()
	d.recover("dpkg was killed")
}

// TestRealHangingScript has a script of a package hang until the time limit of the upgrade kills
// it. The rollback does not run it again.
func TestRealHangingScript(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	d := newDebian(t, family("1.0")...)
	debs := family("2.0")
	debs[1].Scripts["postinst"] = "touch /run/here; exec sleep 600\n"
	d.repository.Add(debs...)
	d.prepare()
	d.begin()
	realhost.UntilOn(t, d, "the script", time.Minute, func() bool { return strings.TrimSpace(d.Must("ls /run/here 2>/dev/null || true")) != "" })
	d.Must("pkill -9 -x osupgrade-agent; pkill -9 -x apt-get; pkill -9 -x dpkg; pkill -9 -x sleep; rm /run/here")
	d.must("rollback", 0)
	d.has(strings.ReplaceAll(upgraded, "2.0", "1.0"))
	d.Must("test ! -e /run/here; test -z \"$(dpkg --audit)\"")
}
