package rauc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// appliance is a container with RAUC of Debian and two slots. Real are RAUC, its D-Bus
// service, its signatures, its loop mounts and its handling of grubenv. The slots are
// files, and the boot loader is [appliance.load], which counts boots in grubenv as the
// grub.cfg of RAUC's documentation does.
type appliance struct {
	*realhost.Container
	t      *testing.T
	s      *Strategy
	dir    string // on this machine and in the container at the same path
	server *httptest.Server
	// version is that of the release to which runs go.
	version string
}

const (
	grubenv    = "/boot/grubenv"
	slotsDir   = "/var/slots"
	realSystem = `[system]
compatible=appliance
bootloader=grub
grubenv=/boot/grubenv
statusfile=/var/lib/rauc.status
bundle-formats=plain
[keyring]
path=/etc/rauc/cert.pem
[slot.rootfs.0]
device=/var/slots/A
type=raw
bootname=A
[slot.rootfs.1]
device=/var/slots/B
type=raw
bootname=B
`
)

func newAppliance(t *testing.T, tree realhost.Tree, imageMiB int) *appliance {
	t.Helper()
	a := &appliance{t: t, dir: filepath.Join(t.TempDir(), "bundles")}
	// RAUC takes a bundle from a file system in memory, or from one whose device it
	// finds, and in a container there are no disks.
	memory, err := os.MkdirTemp("/dev/shm", "rauc") //nolint:usetesting // see above
	if err == nil {
		err = os.Symlink(memory, a.dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(memory) })
	options := realhost.ContainerOptions{Tree: tree, Arguments: []string{"--bind=" + memory + ":" + a.dir, "--bind=/dev/loop-control"}, Loader: a.load}
	for i := range 32 {
		device := fmt.Sprintf("/dev/loop%d", i)
		if _, err := os.Stat(device); err == nil {
			options.Arguments = append(options.Arguments, "--bind="+device)
		}
	}
	a.Container = realhost.NewContainer(t, options)
	a.WriteFile("/etc/rauc/system.conf", realSystem)
	a.WriteFile(slotsDir+"/A", "version 1\n")
	a.WriteFile(slotsDir+"/B", "")
	for _, name := range []string{"A", "B"} {
		if err := os.Truncate(a.Path(slotsDir+"/"+name), int64(imageMiB+1)<<20); err != nil {
			t.Fatal(err)
		}
	}
	a.writeEnv(map[string]string{"ORDER": "A B", "A_OK": "1", "A_TRY": "0", "B_OK": "0", "B_TRY": "0"})
	a.server = httptest.NewServer(http.FileServer(http.Dir(a.dir)))
	t.Cleanup(a.server.Close)
	a.Start()
	a.Must(`cd ` + a.dir + ` && for k in cert other; do
		openssl req -x509 -newkey rsa:2048 -nodes -keyout $k.key -out $k.pem -subj /CN=$k -days 3650 2>/dev/null
	done; cp cert.pem /etc/rauc/cert.pem`)
	a.version = "2"
	a.open()
	return a
}

// open opens the strategy. RAUC is on the bus of the container.
func (a *appliance) open() {
	a.t.Helper()
	var err error
	a.s, err = New(Options{StateDir: a.dir + "/state", bus: "unix:path=" + a.Inside("/run/dbus/system_bus_socket"), root: a.Path("/")})
	if err != nil {
		a.t.Fatal(err)
	}
}

// bundle makes a bundle whose image begins with text.
func (a *appliance) bundle(version, text, key, compatible string, imageMiB int) {
	a.t.Helper()
	a.Must(fmt.Sprintf(`cd %s && rm -rf bundle && mkdir bundle && { echo '%s'; head -c %dM /dev/urandom; } >bundle/rootfs.img &&
		printf '[update]\ncompatible=%s\nversion=%s\n[bundle]\nformat=plain\n[image.rootfs]\nfilename=rootfs.img\n' >bundle/manifest.raucm &&
		rm -f %s.raucb && rauc --cert %s.pem --key %s.key bundle bundle %s.raucb`, a.dir, text, imageMiB, compatible, version, version, key, key, version))
}

// load is GRUB with boot counting: of the slots in ORDER it starts the first that is OK
// and was not tried. A system that panics comes back here.
func (a *appliance) load(string) ([]string, error) {
	env := a.readEnv()
	for range 5 {
		chosen := ""
		for _, name := range strings.Fields(env["ORDER"]) {
			if env[name+"_OK"] == "1" && env[name+"_TRY"] == "0" && chosen == "" {
				chosen = name
				env[name+"_TRY"] = "1"
			}
		}
		if chosen == "" {
			chosen = "A"
			env["A_TRY"], env["B_TRY"] = "0", "0"
		}
		a.writeEnv(env)
		content := a.content(chosen)
		if !strings.Contains(content, "version") || strings.Contains(content, "panics") {
			continue
		}
		a.WriteFile("/etc/appliance", content+"\n")
		// RAUC 1.8 asks the kernel's command line, which is that of this machine.
		a.WriteFile("/etc/systemd/system/rauc.service.d/slot.conf", "[Service]\nExecStart=\nExecStart=/usr/bin/rauc service --override-boot-slot="+chosen+"\n")
		return nil, nil
	}
	return nil, errors.New("no slot starts")
}

// content returns the first line of a slot.
func (a *appliance) content(name string) string {
	a.t.Helper()
	file, err := os.Open(a.Path(slotsDir + "/" + name))
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, 64)
	if _, err := file.Read(head); err != nil {
		a.t.Fatal(err)
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return string(line)
}

const envSize = 1024

// readEnv reads grubenv: lines of a name and a value, filled up with "#".
func (a *appliance) readEnv() map[string]string {
	a.t.Helper()
	data, err := os.ReadFile(a.Path(grubenv))
	if err != nil {
		a.t.Fatal(err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			env[name] = value
		}
	}
	return env
}

func (a *appliance) writeEnv(env map[string]string) { a.WriteFile(grubenv, environment(env)) }

// environment is the file in which GRUB keeps variables.
func environment(env map[string]string) string {
	text := "# GRUB Environment Block\n"
	for _, name := range slices.Sorted(maps.Keys(env)) {
		text += name + "=" + env[name] + "\n"
	}
	return text + strings.Repeat("#", envSize-len(text))
}

// reboot restarts the machine and opens the strategy anew.
func (a *appliance) reboot() {
	a.t.Helper()
	a.again(a.Boots(), func() { _, _ = a.Run(a.t.Context(), "systemctl reboot") })
}

// cut cuts the power and turns the machine on again.
func (a *appliance) cut() {
	a.t.Helper()
	a.again(a.Boots(), func() { a.Cut(); a.Start() })
}

func (a *appliance) again(boots int, do func()) {
	a.t.Helper()
	do()
	realhost.Until(a.t, "the machine starts again", time.Minute, func() bool { return a.Boots() > boots })
	a.BootID()
	a.open()
}

// job is one of a run to the release of the version.
func (a *appliance) job(plan message.ChangeSet) strategy.Job {
	job := strategy.Job{Tenant: "acme", Host: "h01", Run: 41, Plan: plan, Progress: func(int, string) {}}
	return released(job, a.version, release.Image{Compatible: "appliance", URL: a.server.URL + "/" + a.version + ".raucb"})
}

func (a *appliance) runs() string { return strings.TrimSpace(a.Must("cat /etc/appliance")) }

// upgrade goes to a version and restarts the machine.
func (a *appliance) upgrade(version string) strategy.Job {
	a.t.Helper()
	a.version = version
	plan, err := a.s.Prepare(a.t.Context(), a.job(message.ChangeSet{}))
	if err != nil || len(plan.Changes) != 1 || plan.Changes[0].To != version {
		a.t.Fatalf("prepare: %+v, %v", plan, err)
	}
	job := a.job(plan)
	a.install(job)
	a.reboot()
	return job
}

func (a *appliance) install(job strategy.Job) {
	a.t.Helper()
	if outcome, err := a.s.Upgrade(a.t.Context(), job); err != nil || outcome != strategy.RebootRequired {
		a.t.Fatalf("upgrade: %v, %v", outcome, err)
	}
	job.Staged = true
	if missing, err := a.s.Missing(a.t.Context(), job); err != nil || len(missing) > 0 {
		a.t.Fatalf("missing before the reboot: %v, %v", missing, err)
	}
}

// boot checks what the start of the machine came to, and confirms it.
func (a *appliance) boot(want strategy.Boot) {
	a.t.Helper()
	boot, err := a.s.Booted(a.t.Context())
	if err != nil || boot != want {
		a.t.Fatalf("boot %+v, %v, not %+v; grubenv %v", boot, err, want, a.readEnv())
	}
	if err := a.s.Confirm(a.t.Context(), boot); err != nil {
		a.t.Fatal(err)
	}
}

// TestReal goes to a good release, to one that does not start and to one that is rolled
// back, with the real RAUC and real restarts.
func TestReal(t *testing.T) {
	realhost.Need(t, realhost.Quick, realhost.Images)
	t.Parallel()
	releases(t, realhost.Images, "rauc info error; run: rauc info ")
}

// TestRealNewRAUC is TestReal with RAUC 1.13, whose interface differs from that of 1.8:
// bundles are inspected, installations have a transaction.
func TestRealNewRAUC(t *testing.T) {
	realhost.Need(t, realhost.Long, realhost.TrixieImages)
	t.Parallel()
	releases(t, realhost.TrixieImages, "signature verification failed")
}

// releases has the RAUC of a tree go from release to release. refusal is what it says of
// a bundle that it does not trust.
func releases(t *testing.T, tree realhost.Tree, refusal string) {
	t.Helper()
	const size = 2
	a := newAppliance(t, tree, size)
	ctx := t.Context()
	if err := a.s.Detect(ctx); err != nil {
		t.Fatal(err)
	}
	a.boot(strategy.Boot{Running: unknown})

	// A service that D-Bus does not know, and that nobody has started.
	a.Must("systemctl stop rauc; mv /usr/share/dbus-1/system-services/de.pengutronix.rauc.service /root && busctl call org.freedesktop.DBus / org.freedesktop.DBus ReloadConfig")
	err := a.s.Detect(ctx)
	if err == nil {
		t.Fatal("RAUC is not there, and nobody says so")
	}
	realhost.Follow(t, a.Container, remedy.RAUCService, err.Error())
	if err := a.s.Detect(ctx); err != nil {
		t.Errorf("after the remedy: %v", err)
	}
	a.Must("mv /root/de.pengutronix.rauc.service /usr/share/dbus-1/system-services && busctl call org.freedesktop.DBus / org.freedesktop.DBus ReloadConfig")

	before := a.Must("sha256sum /var/slots/* " + grubenv)
	for version, c := range map[string]struct {
		key, compatible, text string
		tells                 bool
	}{
		"5": {"other", "appliance", refusal, strings.Contains(refusal, "run: ")},
		"6": {"cert", "toaster", `it is for "toaster", and this machine is "appliance"`, false},
	} {
		a.bundle(version, "version "+version, c.key, c.compatible, size)
		a.version = version
		if plan, err := a.s.Prepare(ctx, a.job(message.ChangeSet{})); strategy.ClassOf(err) != message.Artifact || !strings.Contains(err.Error(), c.text) {
			t.Errorf("bundle %s: %+v, %v of class %q", version, plan, err, strategy.ClassOf(err))
		} else if c.tells {
			// Its output says what is wrong; with another bundle the machine is upgraded below.
			said, err := a.Run(ctx, realhost.Remedy(t, remedy.RAUCInfo, err.Error()))
			if err == nil || !strings.Contains(said, "signature verification failed") {
				t.Errorf("the command says %v:\n%s", err, said)
			}
		}
	}
	if after := a.Must("sha256sum /var/slots/* " + grubenv); after != before {
		t.Errorf("a bundle that was refused has changed the machine:\n%s%s", before, after)
	}

	a.bundle("2", "version 2", "cert", "appliance", size)
	job := a.upgrade("2")
	if err := a.s.Verify(ctx, job); err != nil || a.runs() != "version 2" {
		t.Fatalf("%s runs: %v", a.runs(), err)
	}
	a.boot(strategy.Boot{Running: "2"})

	a.bundle("3", "version 3 panics", "cert", "appliance", size)
	job = a.upgrade("3")
	if err := a.s.Verify(ctx, job); strategy.ClassOf(err) != message.Boot || a.runs() != "version 2" {
		t.Errorf("%s runs, and verify says %v", a.runs(), err)
	}
	a.boot(strategy.Boot{Running: "2", Failed: "3"})
	for range 2 {
		a.reboot()
		a.boot(strategy.Boot{Running: "2"})
	}

	a.bundle("4", "version 4", "cert", "appliance", size)
	job = a.upgrade("4")
	if a.runs() != "version 4" {
		t.Fatalf("%s runs", a.runs())
	}
	if outcome, err := a.s.Rollback(ctx, job); err != nil || outcome != strategy.RebootRequired {
		t.Fatalf("rollback: %v, %v", outcome, err)
	}
	a.reboot()
	if outcome, err := a.s.Rollback(ctx, job); err != nil || outcome != strategy.Done || a.runs() != "version 2" {
		t.Errorf("rollback after the reboot: %v, %v, %s runs", outcome, err, a.runs())
	}
	a.boot(strategy.Boot{Running: "2"})

	a.upgrade("4")
	// It is not well: nobody marks it as good, and the boot loader goes back.
	a.reboot()
	a.boot(strategy.Boot{Running: "2", Failed: "4"})
	a.reboot()
	a.boot(strategy.Boot{Running: "2"})
}

// TestRealCut cuts the power in the installation: the machine starts the old system,
// and Resume finds what is there.
func TestRealCut(t *testing.T) {
	realhost.Need(t, realhost.Hosts, realhost.Images)
	t.Parallel()
	const size = 48
	a := newAppliance(t, realhost.Images, size)
	a.boot(strategy.Boot{Running: unknown})
	ctx := t.Context()
	outcomes := map[strategy.Outcome]int{}
	for i := range realhost.Times(3, 3, 50) {
		version := fmt.Sprint(i + 2)
		a.bundle(version, "version "+version, "cert", "appliance", size)
		a.version = version
		plan, err := a.s.Prepare(ctx, a.job(message.ChangeSet{}))
		if err != nil || len(plan.Changes) != 1 {
			t.Fatalf("prepare: %+v, %v", plan, err)
		}
		job := a.job(plan)
		running := a.runs()
		copying := make(chan struct{}, 100)
		job.Progress = func(_ int, text string) {
			if strings.HasPrefix(text, "Copying image") {
				copying <- struct{}{}
			}
		}
		ended := make(chan struct{})
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		go func() {
			defer close(ended)
			_, err = a.s.Upgrade(limited, job)
		}()
		select {
		case <-copying:
		case <-ended:
			t.Fatalf("the upgrade ended before the image was copied: %v", err)
		}
		pause := time.Duration(rand.Int64N(int64(60 * time.Millisecond)))
		time.Sleep(pause)
		a.cut()
		cancel()
		<-ended
		outcome, err := a.s.Resume(ctx, job)
		t.Logf("cut %s after the image began: slot B has %q, runs %q, outcome %v, %v", pause, a.content("B"), a.runs(), outcome, err)
		outcomes[outcome]++
		switch {
		case err != nil:
			t.Fatalf("resume: %v", err)
		case outcome == strategy.NotDone:
			if a.runs() != running {
				t.Fatalf("%s runs after a cut in the installation, not %s", a.runs(), running)
			}
			a.install(job)
			a.reboot()
		case outcome == strategy.RebootRequired:
			t.Fatal("a restart is required after a restart")
		}
		if missing, err := a.s.Missing(ctx, job); err != nil || len(missing) > 0 || a.runs() != "version "+version {
			t.Fatalf("missing %v, %v; %s runs", missing, err, a.runs())
		}
		a.boot(strategy.Boot{Running: version})
	}
	t.Logf("outcomes %v", outcomes)
}
