package rauc

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// grubConf is the configuration of a machine whose slots are partitions.
const grubConf = `[system]
compatible=appliance
bootloader=grub
grubenv=/grubenv/grub/grubenv
statusfile=/data/rauc.status
[keyring]
path=/etc/rauc/cert.pem
[slot.rootfs.0]
device=/dev/vda2
type=ext4
bootname=A
[slot.rootfs.1]
device=/dev/vda3
type=ext4
bootname=B
`

// grubMachine is a virtual machine with release 1 that GRUB starts, with boot counting, and
// the site that upgrades it, with a check after the upgrade.
type grubMachine struct {
	*realhost.VM
	t     *testing.T
	slots *realhost.Slots
	site  *realhost.Site
	// bundles is the folder that the machine fetches from, and address where that is for it.
	bundles, address string
}

func newGRUBMachine(t *testing.T) *grubMachine {
	t.Helper()
	m := &grubMachine{t: t, bundles: t.TempDir(), site: realhost.NewSite(t)}
	sh(t, m.bundles, `openssl req -x509 -newkey rsa:2048 -nodes -keyout cert.key -out cert.pem -subj /CN=cert -days 3650 2>/dev/null`)
	server := httptest.NewServer(http.FileServer(http.Dir(m.bundles)))
	t.Cleanup(server.Close)
	m.VM = realhost.NewVM(t, realhost.NewContainer(t, realhost.ContainerOptions{Tree: realhost.Images}))
	m.slots = realhost.NewSlots(m.VM)
	cert, err := os.ReadFile(filepath.Join(m.bundles, "cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	m.WriteFile("/etc/rauc/cert.pem", string(cert))
	m.WriteFile("/etc/rauc/system.conf", grubConf)
	m.address = "http://" + m.Reach(strings.TrimPrefix(server.URL, "http://"))
	m.site.AddHost(m.VM, "h01", map[string]string{"strategy": "rauc", "rauc-bundle": m.address + "/offered.raucb", "rauc-allow-http": "true"})
	m.release("1")
	// The machine is slow: the last try needs time enough to say what has failed.
	rollout := v1.Rollout{Checks: &rollout.Checks{AfterHost: []rollout.Check{{Type: "units", Interval: "40s", Timeout: "2m"}}}}
	if _, err := m.site.Client.PutRollout(t.Context(), realhost.Tenant, rollout, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	return m
}

// release makes a bundle of the files that the machine was made of. The first one is in slot A.
func (m *grubMachine) release(version string) {
	m.t.Helper()
	if err := os.WriteFile(m.Path("/etc/appliance"), []byte("version "+version+"\n"), 0o600); err != nil {
		m.t.Fatal(err)
	}
	sh(m.t, m.bundles, fmt.Sprintf(`rm -rf bundle && mkdir bundle
		ln %[2]s bundle/rootfs.ext4 || cp --sparse=always %[2]s bundle/rootfs.ext4
		printf '[update]\ncompatible=appliance\nversion=%[1]s\n[bundle]\nformat=verity\n[image.rootfs]\nfilename=rootfs.ext4\n' >bundle/manifest.raucm
		rauc --cert cert.pem --key cert.key --mksquashfs-args='-comp zstd -Xcompression-level 3' bundle bundle %[1]s.raucb`, version, m.slots.Image(version)))
}

// upgrade offers a release and has the site upgrade the machine.
func (m *grubMachine) upgrade(version string) (v1.Run, v1.RunHost) {
	m.t.Helper()
	sh(m.t, m.bundles, "ln -f "+version+".raucb offered.raucb")
	m.site.Online("h01")
	run := m.site.EndedOn(m, m.site.Begin())
	m.t.Logf("release %s: %s: %s: %s", version, run.Result, run.Hosts[0].Class, run.Hosts[0].Error)
	return run, run.Hosts[0]
}

// reboot starts the machine once more, as an operator would.
func (m *grubMachine) reboot() {
	m.t.Helper()
	boot := m.BootID()
	m.Must("nohup systemctl reboot >/dev/null 2>&1 &")
	realhost.Until(m.t, "another boot", 5*time.Minute, func() bool { return m.BootID() != boot })
}

func (m *grubMachine) runs() string { return strings.TrimSpace(m.Must("cat /etc/appliance")) }

// TestRealGRUB upgrades a machine to a good release, which is completed, and confirmed when
// the check of the rollout has passed. The next one has an init that panics: the machine goes back by itself, the run tells it with
// both versions, and the release is not installed again.
func TestRealGRUB(t *testing.T) {
	realhost.Need(t, realhost.Long, realhost.Images)
	t.Parallel()
	m := newGRUBMachine(t)
	m.release("2")
	sh(t, m.Path("/usr/sbin"), `mv init init.real && printf '#!/bin/sh\necho this init is broken\n' >init && chmod 755 init`)
	m.release("3")
	m.Start()
	if run, host := m.upgrade("2"); run.Result != "completed" || m.runs() != "version 2" {
		t.Fatalf("%s runs, and the run ended as %s: %s: %+v", m.runs(), run.Result, run.Reason, host)
	}
	run, host := m.upgrade("3")
	if run.Result == "completed" || !host.RolledBack || host.Class != "boot" || m.runs() != "version 2" {
		t.Errorf("%s runs, and the run ended as %s: %+v", m.runs(), run.Result, host)
	}
	for _, version := range []string{"2", "3"} {
		if !strings.Contains(host.Error, version) {
			t.Errorf("the operator is told %q, without version %s", host.Error, version)
		}
	}
	boot := m.BootID()
	if run, host = m.upgrade("3"); failed(run) || m.BootID() != boot || m.runs() != "version 2" {
		t.Errorf("the release that failed was tried again: %s runs: %+v", m.runs(), host)
	}
}

// TestRealGRUBUnwell upgrades a machine to a release that starts and fails a check of the
// rollout: nobody marks its slot as good, so the next start goes back, which is told, and the
// one after that stays there.
func TestRealGRUBUnwell(t *testing.T) {
	realhost.Need(t, realhost.Long, realhost.Images)
	t.Parallel()
	m := newGRUBMachine(t)
	m.WriteFile("/etc/systemd/system/appliance.service", "[Service]\nType=oneshot\nExecStart=/bin/false\n[Install]\nWantedBy=multi-user.target\n")
	m.Enable("appliance.service")
	m.release("2")
	m.Start()
	if run, host := m.upgrade("2"); !failed(run) || !strings.Contains(host.Error, "appliance.service") || m.runs() != "version 2" {
		t.Errorf("%s runs, and the run ended as %s: %+v", m.runs(), run.Result, host)
	}
	for range 2 {
		m.reboot()
		if m.runs() != "version 1" {
			t.Fatalf("%s runs after the failure", m.runs())
		}
		realhost.Until(t, "the way back is told", 5*time.Minute, func() bool {
			hosts, err := m.site.Client.Hosts(t.Context(), realhost.Tenant, "")
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(hosts[0].Warnings, func(w v1.Warning) bool { return w.Kind == "rolled-back" })
		})
	}
	boot := m.BootID()
	if run, _ := m.upgrade("2"); failed(run) || m.BootID() != boot || m.runs() != "version 1" {
		t.Errorf("the release that failed was tried again: %s runs", m.runs())
	}
}

// declare makes a bundle and declares a release of it, by its digest, with one for machines of
// another kind.
func (m *grubMachine) declare(version string) (name string) {
	m.t.Helper()
	m.release(version)
	bundle, err := os.ReadFile(filepath.Join(m.bundles, version+".raucb"))
	if err != nil {
		m.t.Fatal(err)
	}
	name = "v" + version
	m.site.Declare(name, v1.Release{Images: []release.Image{
		{Compatible: "toaster", URL: m.address + "/offered.raucb", SHA256: strings.Repeat("0", 64)},
		{Compatible: "appliance", URL: m.address + "/" + version + ".raucb", SHA256: fmt.Sprintf("%x", sha256.Sum256(bundle)), Size: len(bundle)},
	}})
	return name
}

// cutsIn cuts the power at a moment after the host of a run has come to a status, and returns the run
// when it has ended, and whether the cut came before that status was over.
func (m *grubMachine) cutsIn(status string, within time.Duration, run v1.Run) (struck bool, ended v1.Run) {
	m.t.Helper()
	now := func() string {
		run, err := m.site.Client.Run(m.t.Context(), realhost.Tenant, run.ID)
		if err != nil {
			m.t.Fatal(err)
		}
		return run.Hosts[0].Status
	}
	realhost.UntilOn(m.t, m, "the host is "+status, 5*time.Minute, func() bool {
		s := now()
		return s == status || s == "upgraded" || s == "failed"
	})
	wait := time.Duration(rand.Int64N(int64(within))) //nolint:gosec // any moment
	time.Sleep(wait)
	struck = now() == status
	m.Cut()
	m.Start()
	ended = m.site.EndedOn(m, run)
	host := ended.Hosts[0]
	if ended.Result != "completed" && host.Class == "" {
		m.t.Errorf("run %d failed without a class: %s", ended.ID, host.Error)
	}
	m.t.Logf("cut %.1f s after it was %s: %s, rolled back %v: %s: %s", wait.Seconds(), status, ended.Result, host.RolledBack, host.Class, host.Error)
	return struck, ended
}

// TestRealGRUBCuts cuts the power while the machine fetches the bundle of a release, while RAUC installs
// it, and while the machine reboots for it. Whatever the run then says is true: a release that is
// completed runs, and otherwise the one of before, to which GRUB goes back by itself. The bundle that
// the worker would take without a release is another one, and never runs.
func TestRealGRUBCuts(t *testing.T) {
	realhost.Need(t, realhost.Long, realhost.Images)
	t.Parallel()
	m := newGRUBMachine(t)
	m.release("latest")
	sh(t, m.bundles, "ln -f latest.raucb offered.raucb")
	m.Start()
	runs := "version 1"
	realhost.Strike(t, "power cut under GRUB", realhost.Times(0, 0, 12), func(n int) bool {
		version := fmt.Sprint(n + 2)
		name := m.declare(version)
		m.site.Online("h01")
		struck, run := m.cutsIn([]string{"preparing", "upgrading", "rebooting"}[n%3], 8*time.Second, m.site.BeginRelease(name))
		if run.Result == "completed" {
			runs = "version " + version
		}
		if got := m.runs(); got != runs {
			t.Fatalf("attempt %d: %s runs, not %s", n, got, runs)
		}
		return struck
	})
}

// TestRealGRUBRollbackCuts cuts the power while a run that installed a release is rolled back, and then
// while that rollback is rolled back, and so on. A rollback that is completed runs the release from
// before, and otherwise nothing has changed.
func TestRealGRUBRollbackCuts(t *testing.T) {
	realhost.Need(t, realhost.Long, realhost.Images)
	t.Parallel()
	m := newGRUBMachine(t)
	name := m.declare("2")
	m.Start()
	m.site.Online("h01")
	newest := m.site.EndedOn(m, m.site.BeginRelease(name))
	versions, runs := [2]string{"version 1", "version 2"}, 1
	if newest.Result != "completed" || m.runs() != versions[runs] {
		t.Fatalf("%s runs, and the run ended as %s: %s: %+v", m.runs(), newest.Result, newest.Reason, newest.Hosts)
	}
	realhost.Strike(t, "power cut of a rollback under GRUB", realhost.Times(0, 0, 10), func(n int) bool {
		m.site.Online("h01")
		// All but the reboot is done within some seconds.
		status, within := "rebooting", 8*time.Second
		if n%3 == 2 {
			status, within = "preparing", 2*time.Second
		}
		struck, run := m.cutsIn(status, within, m.site.BeginRollback(newest.ID))
		if run.Result == "completed" {
			newest, runs = run, 1-runs
		}
		if got := m.runs(); got != versions[runs] {
			t.Fatalf("attempt %d: %s runs, not %s", n, got, versions[runs])
		}
		return struck
	})
}

// sh runs a script of this machine in a folder.
func sh(t *testing.T, dir, script string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", "-ec", script)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}
