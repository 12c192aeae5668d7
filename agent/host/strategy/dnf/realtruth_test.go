package dnf_test

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestRealFilesOfBefore is what a power cut may leave: rpm has recorded the new version, and
// the files are others. Who resumes installs them again, and believes no record.
func TestRealFilesOfBefore(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		m := newMachine(t, s, pack{name: "appliance", version: "1.0"}, pack{name: "appliance-lib", version: "1.0"})
		m.publish(pack{name: "appliance", version: "2.0", fields: "Epoch: 1"}, pack{name: "appliance-lib", version: "2.0"})
		m.prepare()
		m.must("upgrade")
		m.must("resume")
		m.Must("echo 1.0 >/usr/share/appliance-2.0/version; rm /usr/share/appliance-lib-2.0/data")
		if got := m.must("resume"); !strings.Contains(got.text, "repairing") {
			t.Errorf("it says\n%s", got.text)
		}
		if got := m.Must("cat /usr/share/appliance-2.0/version; rpm -V appliance appliance-lib"); got != "2.0\n" {
			t.Errorf("the files are\n%s", got)
		}
		m.done()
	})
}

// TestRealDamagedArchive damages an archive after its download, without a change of its
// size: it is fetched again, and never installed.
func TestRealDamagedArchive(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		m := newMachine(t, s, pack{name: "appliance", version: "1.0"})
		m.publish(pack{name: "appliance", version: "2.0"})
		m.prepare()
		damage := func() {
			m.Must("f=$(find " + s.cache + " -name 'appliance-2.0*.rpm') && n=$(stat -c %s $f) && dd if=/dev/zero of=$f bs=1 seek=$((n-2000)) count=1000 conv=notrunc 2>&1")
		}
		damage()
		m.prepare()
		damage()
		m.must("upgrade")
		m.done()
		m.Must("rpm -V appliance")
	})
}

// TestRealLyingMirror downloads from a mirror that sends other bytes, in prepare and when the upgrade
// has to download again. Nothing is installed, and with the truth the host is upgraded.
func TestRealLyingMirror(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		m := newMachine(t, s, pack{name: "appliance", version: "1.0"})
		m.publish(pack{name: "appliance", version: "2.0"})
		m.lies.Store(true)
		m.fails("prepare", message.Artifact, "appliance")
		m.has("appliance-1.0-1.noarch")
		m.lies.Store(false)
		m.prepare()
		m.lies.Store(true)
		m.Must("find " + s.cache + " -name '*.rpm' -delete")
		m.fails("upgrade", message.Artifact, "appliance")
		m.has("appliance-1.0-1.noarch")
		m.lies.Store(false)
		m.prepare()
		m.must("upgrade")
		m.done()
		m.Must("rpm -V appliance")
	})
}

// TestRealRollbackLeavesOthers has a person install a version between prepare and upgrade.
func TestRealRollbackLeavesOthers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		m := newMachine(t, s, pack{name: "appliance", version: "1.0"}, pack{name: "appliance-other", version: "1.0"})
		m.publish(pack{name: "appliance", version: "2.0"}, pack{name: "appliance-other", version: "2.0"})
		m.prepare()
		m.publish(pack{name: "appliance-other", version: "3.0"})
		m.Must("dnf -q -y --refresh install appliance-2.0 appliance-other-3.0 || dnf -q -y --refresh upgrade appliance-2.0 appliance-other-3.0")
		m.must("rollback")
		m.has("appliance-1.0-1.noarch", "appliance-other-3.0-1.noarch")
	})
}

// TestRealDNFKilled kills dnf alone between new and old versions. Whatever comes next repairs
// the host: the rollback, the next run, or the upgrade that is taken up again.
func TestRealDNFKilled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		m := newMachine(t, s, family("1.0")...)
		m.publish(family("2.0")...)
		kill := func() {
			m.prepare()
			m.begin("upgrade")
			realhost.UntilOn(t, m, "two versions", time.Minute, func() bool { return strings.Count(m.Must("rpm -qa 'appliance*'"), "\n") > 3 })
			m.kill("dnf5?")
			realhost.UntilOn(t, m, "the end of the upgrade", time.Minute, m.ended)
			if out := m.Must("cat /var/out"); !strings.Contains(out, `"class":"transient"`) {
				t.Fatalf("dnf was killed, and the upgrade ends with\n%s", out)
			}
		}
		old := []string{"appliance-0-1.0-1.noarch", "appliance-1-1.0-1.noarch", "appliance-2-1.0-1.noarch"}
		kill()
		m.must("rollback")
		m.has(old...)
		kill()
		kill() // Prepare repairs what the last one has left.
		m.must("resume")
		m.done()
		m.has("appliance-0-2.0-1.noarch", "appliance-1-2.0-1.noarch", "appliance-2-2.0-1.noarch")
	})
}

// states are those of hosts that only a person may repair, with how they are repaired.
var states = []struct {
	name string
	test func(m *machine, s system)
}{
	{"dnf of others was killed between new and old versions", func(m *machine, _ system) {
		m.Must("(setsid dnf -q -y --refresh upgrade >/dev/null 2>&1) >/dev/null 2>&1 </dev/null &")
		realhost.UntilOn(m.t, m, "two versions", time.Minute, func() bool { return strings.Count(m.Must("rpm -qa 'appliance*'"), "\n") > 3 })
		m.kill("dnf5?")
		realhost.Follow(m.t, m, remedy.DNFDuplicates, m.left("prepare", message.Install, remedy.DNFDuplicates))
		m.healed()
	}},
	{"an own upgrade was killed and the repository has gone on", func(m *machine, _ system) {
		held := family("2.0")
		held[2].post = "while [ -e /run/hold ]; do sleep 0.1; done; " + held[2].post
		m.publish(held...)
		m.prepare()
		m.Must("touch /run/hold")
		m.begin("upgrade")
		realhost.UntilOn(m.t, m, "two versions", time.Minute, func() bool { return strings.Contains(m.Must("rpm -qa 'appliance*'"), "appliance-2-2.0") })
		m.kill("dnf5?")
		m.Must("rm /run/hold")
		realhost.UntilOn(m.t, m, "the end of the upgrade", time.Minute, m.ended)
		m.Must("rm /srv/repo/noarch/appliance-?-[12].0-1.noarch.rpm")
		m.publish(family("3.0")...)
		m.Must("dnf -q --refresh makecache")
		// What dnf5 says, and so the class, depends on how far it came.
		said := ""
		for _, action := range []string{"resume", "rollback", "prepare"} {
			said = m.act(action).text
			realhost.Remedy(m.t, remedy.DNFDuplicates, said)
		}
		realhost.Follow(m.t, m, remedy.DNFDuplicates, said)
		m.healed()
		m.is("3.0")
	}},
	{"a rollback finds the old versions in no repository", func(m *machine, s system) {
		m.publish(pack{name: "appliance-2", version: "2.1", fields: "Requires: appliance-new"}, pack{name: "appliance-new", version: "1.0"})
		m.healed()
		m.Must("mkdir -p /srv/old && mv /srv/repo/noarch/appliance-?-1.0-1.noarch.rpm /srv/old")
		m.publish()
		m.Must("dnf -q --refresh makecache; find " + s.cache + " -name '*.rpm' -delete")
		said := m.act("rollback")
		if said.status != 11 {
			m.t.Fatalf("rollback ends with %d:\n%s", said.status, said.text)
		}
		m.Must("mv /srv/old/* /srv/repo/noarch")
		m.publish()
		realhost.Follow(m.t, m, remedy.DNFOldVersions, said.text)
		m.is("1.0")
		m.healed()
	}},
	{"a mirror sends other bytes", func(m *machine, _ system) {
		m.lies.Store(true)
		m.left("prepare", message.Artifact, remedy.DNFDamaged)
		m.lies.Store(false)
		m.healed()
	}},
	{"the address of a repository is wrong", func(m *machine, s system) {
		m.Must("cp /etc/yum.repos.d/appliance.repo /root; sed -i '/^baseurl/s|$|elsewhere/|' /etc/yum.repos.d/appliance.repo; rm -rf " + s.cache)
		m.left("prepare", message.Repository, remedy.DNFRepositories)
		m.Must("cp /root/appliance.repo /etc/yum.repos.d")
		m.healed()
	}},
	{"a version or package is named that there is not", func(m *machine, _ system) {
		m.options = map[string]any{"Mode": "packages", "Packages": []string{"appliance-0=9-1"}}
		m.left("prepare", message.Repository, remedy.DNFNoVersion)
		m.options["Packages"] = []string{"extra"}
		said := m.left("prepare", message.Install, remedy.DNFNotThere)
		m.publish(pack{name: "extra", version: "1.0"})
		_, word, _ := strings.Cut(said, "write ")
		word, _, _ = strings.Cut(word, " ")
		m.options["Packages"] = []string{strings.Replace(word, "VERSION", "1.0-1", 1)}
		m.healed()
	}},
	{"dnf is too old", func(m *machine, _ system) {
		m.prepare()
		// It refuses what a later one can do, in the words of an old one.
		m.Must("mv /usr/bin/dnf /usr/bin/later")
		m.WriteFile("/usr/bin/dnf", "#!/bin/sh\ncase \"$*\" in *replay*) echo \"dnf history: error: argument: invalid choice: 'replay'\" >&2; exit 2;; esac\nexec /usr/bin/later \"$@\"\n")
		m.Must("chmod 755 /usr/bin/dnf")
		m.left("upgrade", message.Install, remedy.DNFTooOld)
		m.Must("mv /usr/bin/later /usr/bin/dnf")
		m.healed()
	}},
}

// TestRealRemedies leaves hosts in states that only a person may repair, and follows what the
// failure prints: the host is healthy then, and the next run upgrades it.
func TestRealRemedies(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		for _, row := range states {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, s, family("1.0")...)
				m.publish(family("2.0")...)
				row.test(m, s)
			})
		}
	})
}
