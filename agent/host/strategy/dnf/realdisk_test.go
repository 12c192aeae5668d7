package dnf_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// vendor is a package with files on each of the file systems of the test.
func vendor(version string) pack {
	p := pack{name: "vendor", version: version, files: []string{"/boot/vendor", "/var/lib/vendor/state", "/usr/share/vendor/file"}}
	for n := range 20 {
		p.files = append(p.files, fmt.Sprintf("/opt/vendor/%d", n))
	}
	return p
}

// volatile is a virtual machine with vendor 1.0, whose /opt, /var and /boot are file systems of their
// own, on disks that lose what was not flushed.
type volatile struct {
	*machine
	power *realhost.Power
	// offers has the repository of each version.
	offers string
}

func newVolatile(t *testing.T, s system, versions []string) *volatile {
	t.Helper()
	m := newMachine(t, s, vendor("1.0"))
	v := &volatile{machine: m, offers: t.TempDir()}
	for _, version := range versions {
		m.publish(vendor(version))
		if err := os.CopyFS(filepath.Join(v.offers, version), os.DirFS(m.served)); err != nil {
			t.Fatal(err)
		}
	}
	m.Must("rm -rf /srv/top /srv/repo")
	m.Cut()
	vm := realhost.NewVM(t, m.container)
	// They write by themselves as seldom as they can.
	v.power = vm.Volatile(
		realhost.Mount{Path: "/opt", Kind: "ext4", Options: "commit=300"},
		realhost.Mount{Path: "/var", Kind: "ext4", Options: "commit=300"},
		realhost.Mount{Path: "/boot", Kind: "ext4", Options: "commit=300"},
	)
	m.Machine = vm
	m.follow()
	m.Start()
	return v
}

// offer has the repository of a version served.
func (v *volatile) offer(version string) {
	v.t.Helper()
	err := os.RemoveAll(v.served)
	if err == nil {
		err = os.CopyFS(v.served, os.DirFS(filepath.Join(v.offers, version)))
	}
	if err != nil {
		v.t.Fatal(err)
	}
}

// lose cuts the power, and has all disks lose what was not flushed.
func (v *volatile) lose() {
	v.t.Helper()
	v.Cut()
	v.Start()
}

// holds fails the test unless the database and each file have a version.
func (v *volatile) holds(version string) {
	v.t.Helper()
	if got := strings.TrimSpace(v.Must("rpm -q vendor")); got != "vendor-"+version+"-1.noarch" {
		v.t.Errorf("the database has %q, not version %s", got, version)
	}
	if wrong := v.Must("rpm -V vendor; grep -L '^" + version + " ' /opt/vendor/* /boot/vendor /var/lib/vendor/state /usr/share/vendor/file || true"); wrong != "" {
		v.t.Errorf("not of version %s: %s", version, wrong)
	}
}

// TestRealVolatileDisks cuts the power of a host whose packages have files on other file systems
// than rpm's database, at a flush of the disk of that after the record of the new version was written, and
// loses what no flush has followed, or a part of it. What takes the upgrade up again completes
// it, with each file of the plan, and done is on each disk.
func TestRealVolatileDisks(t *testing.T) {
	realhost.Need(t, realhost.Hosts, realhost.Images)
	t.Parallel()
	cuts := realhost.Times(0, 2, 20)
	var versions []string
	for n := range realhost.Attempts(cuts) {
		versions = append(versions, fmt.Sprintf("2.%d", n))
	}
	v := newVolatile(t, system{"dnf4", realhost.Images, "/var/cache/dnf", ""}, versions)
	realhost.Strike(t, "power cut at a flush of a volatile disk", cuts, func(n int) bool {
		version := versions[n]
		v.offer(version)
		v.prepare()
		aim := realhost.Aim{Mount: "/var", Text: "vendor-" + version + "-1.src.rpm", Flushes: rand.IntN(6)} //nolint:gosec // any of them
		if n%2 == 1 {
			aim.Keep = func() bool { return rand.IntN(2) == 0 } //nolint:gosec // any part
		}
		command := v.request("upgrade")
		hit, ended := v.power.CutAt(aim), make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = v.Run(t.Context(), command)
		}()
		struck := false
		select {
		case <-hit:
			struck = true
			v.Cut()
			<-ended
		case <-ended:
			v.Cut()
		case <-time.After(10 * time.Minute):
			t.Fatal("the upgrade does not end")
		}
		v.Start()
		t.Logf("cut at flush %d: %v; the database has %s", aim.Flushes, struck, strings.TrimSpace(v.Must("rpm -q vendor || true")))
		v.resume()
		v.lose()
		v.holds(version)
		return struck
	})
}
