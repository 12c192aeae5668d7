package realhost_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// repack makes packages of what is installed of systemd and D-Bus, with their scripts and a later
// version, and a repository of them. Only the number differs from a real upgrade.
const repack = `exec >/dev/null; set -e
rm -rf /srv/own && mkdir /srv/own && cd /srv/own
for p in $(` + family + `); do
	version=$(dpkg-query -W -f '${Version}' $p)
	rm -rf /srv/pack && mkdir -p /srv/pack/DEBIAN
	dpkg -L $p | while read -r f; do
		if [ -d "$f" ]; then mkdir -p "/srv/pack$f"; elif [ -e "$f" ] || [ -L "$f" ]; then cp -a "$f" "/srv/pack$f"; fi
	done
	for kind in preinst postinst prerm postrm conffiles triggers; do
		for f in /var/lib/dpkg/info/$p.$kind /var/lib/dpkg/info/$p:*.$kind; do [ ! -e $f ] || cp -p $f /srv/pack/DEBIAN/$kind; done
	done
	dpkg-query -s $p | sed -e '/^Status:/d; /^Config-Version:/d; /^Conffiles:/,/^[A-Z]/{/^Conffiles:/d; /^ /d}' \
		-e "s/^Version: .*/&+own/; s/(= $version)/(= $version+own)/g" >/srv/pack/DEBIAN/control
	dpkg-deb --root-owner-group -Znone -b /srv/pack $p.deb
	{ cat /srv/pack/DEBIAN/control; echo "Filename: ./$p.deb"; echo "Size: $(stat -c %s $p.deb)"; echo "SHA256: $(sha256sum $p.deb | cut -d' ' -f1)"; echo; } >>Packages
done
echo 'deb [trusted=yes] copy:/srv/own ./' >/etc/apt/sources.list.d/own.list
`

// TestRealSystemdUpgraded upgrades the systemd that runs the worker, with all that comes from its
// source, and D-Bus: it executes itself anew in the midst of the action. The unit of the worker lives
// through it until the reboot for which D-Bus asks, and done is right. Then it does so again, and
// the power is cut in its midst.
func TestRealSystemdUpgraded(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	r := newRig(t, realhost.ContainerOptions{Size: "2g"}, appliance("1.0"))
	r.renew("2.0")
	worker := r.c.Must(startsOfWorker)
	var run v1.Run
	lines := r.lines(func() { run = r.upgraded() })
	r.renewed("2.0", "+own")
	if after := r.c.Must(strings.Replace(startsOfWorker, "-b 0", "-b -1", 1)); after != worker {
		t.Errorf("before run %d the worker had started so often: %s, and then until the reboot: %s", run.ID, worker, after)
	}
	if said := r.c.Must("journalctl -q -b -1 --no-pager -o cat _PID=1"); !strings.Contains(said, "Reexecuting") {
		t.Errorf("systemd has not executed itself anew:\n%s", said)
	}
	r.Online("h01")

	suffix := "+own"
	realhost.Strike(t, "power cut", 1, func(n int) bool {
		version := number(3+n) + ".0"
		r.renew(version)
		before, at := r.line(), 1+rand.IntN(lines) //nolint:gosec // any moment
		run := r.Begin()
		r.reaches(before + at)
		struck := r.cut()
		t.Logf("the power was cut at line %d of %d", at, lines)
		r.completed(r.Ended(run))
		suffix += "+own"
		r.renewed(version, suffix)
		r.Online("h01")
		return struck
	})
}

// startsOfWorker prints how often the unit of the worker has started since the boot.
const startsOfWorker = "journalctl -q -b 0 --no-pager -o cat _PID=1 | grep -c '^Started osupgrade-worker.service'"

// family are the packages from the sources of systemd and D-Bus.
const family = `dpkg-query -W -f '${Package} ${source:Package}\n' | sed -n 's/ \(systemd\|dbus\)$//p'`

// renew offers the family in a later version, and appliance, which is configured last.
func (r *rig) renew(version string) {
	r.t.Helper()
	r.c.Must(repack)
	last := appliance(version)
	last.Fields = []string{"Depends: systemd (>= " + r.c.Must("dpkg-query -W -f '${Version}' systemd") + "+own)"}
	r.repository.Add(last)
}

// renewed fails the test unless the host has all that.
func (r *rig) renewed(version, suffix string) {
	r.t.Helper()
	r.has("appliance " + version)
	has := strings.Fields(r.c.Must(strings.Replace(family, "${Package} ", "${db:Status-Status}${Version}/${Package} ", 1)))
	for _, p := range has {
		if state, _, _ := strings.Cut(p, "/"); !strings.HasPrefix(state, "installed") || !strings.HasSuffix(state, suffix) || strings.HasSuffix(state, "+own"+suffix) {
			r.t.Errorf("it has %s, without %s", p, suffix)
		}
	}
	if len(has) < 5 {
		r.t.Errorf("it has only %v", has)
	}
	r.c.Must("dpkg --verify $(" + family + ")")
}
