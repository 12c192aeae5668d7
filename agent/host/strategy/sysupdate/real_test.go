package sysupdate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// appliance is a container with the real systemd-sysupdate: real are the versions that it acquires
// and installs from a folder, what it removes, and restarts. The boot loader is [appliance.load], which
// counts starts as systemd-boot does; systemd-bless-boot needs EFI, so a script stands in for it.
type appliance struct {
	*realhost.Container
	t *testing.T
	s *Strategy
	// panics are the versions that do not start.
	panics []string
}

const folder = "/boot/EFI/Linux"

// transfer is the transfer file of one part of a version.
const transfer = `[Transfer]
ProtectVersion=%%A
Verify=no
[Source]
Type=regular-file
Path=/srv/source
MatchPattern=kiosk_@v.%s
[Target]
Type=regular-file
Path=%s
MatchPattern=%s
TriesLeft=3
TriesDone=0
InstancesMax=2
`

const blessBoot = `#!/bin/sh
entry=$(cat /srv/started)
case $entry in *+*) ;; *) echo clean; exit ;; esac
case $1 in
status) if [ -e ` + folder + `/$entry ]; then echo indeterminate; else echo good; fi ;;
good) mv ` + folder + `/$entry ` + folder + `/${entry%%+*}.efi ;;
esac
`

func newAppliance(t *testing.T) *appliance {
	t.Helper()
	a := &appliance{t: t}
	a.Container = realhost.NewContainer(t, realhost.ContainerOptions{Tree: realhost.Sysupdate, Loader: a.load})
	a.WriteFile("/etc/sysupdate.d/10-root.transfer", fmt.Sprintf(transfer, "root", "/var/lib/roots", "kiosk_@v.root"))
	a.WriteFile("/etc/sysupdate.d/50-kernel.transfer", fmt.Sprintf(transfer, "efi", folder, "kiosk_@v+@l-@d.efi kiosk_@v+@l.efi kiosk_@v.efi"))
	a.WriteFile("/usr/lib/systemd/systemd-bless-boot", blessBoot)
	a.WriteFile(folder+"/kiosk_1.efi", "kernel 1")
	a.WriteFile("/var/lib/roots/kiosk_1.root", "root 1")
	a.release("1")
	a.Start()
	a.Must("chmod 755 /usr/lib/systemd/systemd-bless-boot")
	a.open()
	return a
}

// release offers a version at the source.
func (a *appliance) release(version string) {
	a.t.Helper()
	a.WriteFile("/srv/source/kiosk_"+version+".root", "root "+version)
	a.WriteFile("/srv/source/kiosk_"+version+".efi", "kernel "+version)
}

// open opens the strategy, whose programs run in the container.
func (a *appliance) open() {
	a.t.Helper()
	a.s = New(Options{root: a.Inside("/"), run: func(ctx context.Context, c program.Command) (program.Ended, error) {
		out, err := a.Run(ctx, strings.Join(append([]string{c.Name}, c.Args...), " ")+" 2>/run/said")
		said, _ := a.Run(ctx, "cat /run/said")
		ended := program.Ended{Stdout: out, Printed: out + said}
		if exited, ok := errors.AsType[*exec.ExitError](err); ok {
			ended.Exit, err = exited.ExitCode(), nil
		}
		return ended, err
	}})
}

// load is the boot loader.
func (a *appliance) load(string) ([]string, error) {
	for {
		found, err := filepath.Glob(a.Path(folder + "/kiosk_*.efi"))
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("there is no boot entry: %w", err)
		}
		slices.SortFunc(found, func(x, y string) int {
			return strings.Compare(versionOf(filepath.Base(y)), versionOf(filepath.Base(x)))
		})
		i := slices.IndexFunc(found, func(entry string) bool { out, _ := spent(entry); return !out })
		entry := found[max(i, 0)]
		if at := counters().FindStringSubmatch(entry); at != nil && i >= 0 {
			left, _ := strconv.Atoi(at[1])
			done, _ := strconv.Atoi(at[3])
			next := counted(entry, fmt.Sprintf("+%d-%d", left-1, done+1))
			if err := os.Rename(entry, next); err != nil {
				return nil, err
			}
			entry = next
		}
		version := versionOf(filepath.Base(entry))
		if slices.Contains(a.panics, version) {
			continue
		}
		a.WriteFile("/srv/started", filepath.Base(entry))
		a.WriteFile("/usr/lib/os-release", "ID=kiosk\nVERSION_ID="+version+"\nIMAGE_ID=kiosk\nIMAGE_VERSION="+version+"\n")
		return nil, nil
	}
}

// reboot restarts the machine, checks what the start came to, and confirms it.
func (a *appliance) reboot(want strategy.Boot) {
	a.t.Helper()
	boots := a.Boots()
	_, _ = a.Run(a.t.Context(), "systemctl reboot")
	realhost.Until(a.t, "the machine starts again", time.Minute, func() bool { return a.Boots() > boots })
	a.BootID()
	a.open()
	a.boot(want)
}

func (a *appliance) boot(want strategy.Boot) {
	a.t.Helper()
	boot, err := a.s.Booted(a.t.Context())
	if err != nil || boot != want {
		a.t.Fatalf("boot %+v, %v; want %+v", boot, err, want)
	}
	if err := a.s.Confirm(a.t.Context(), boot); err != nil {
		a.t.Fatal(err)
	}
}

// prepare expects a plan to a version. The job has the release of that version if released is set.
func (a *appliance) prepare(to string, asRelease bool) strategy.Job {
	a.t.Helper()
	job := strategy.Job{Run: 41, Progress: func(int, string) {}}
	if asRelease {
		job = released(job, to, release.Image{URL: "file:///srv/source", Compatible: "kiosk"})
	}
	plan, err := a.s.Prepare(a.t.Context(), job)
	if err != nil || len(plan.Changes) != 1 || plan.Changes[0].To != to {
		a.t.Fatalf("prepare: %+v, %v", plan, err)
	}
	job.Plan = plan
	return job
}

func (a *appliance) upgrade(job strategy.Job) {
	a.t.Helper()
	if outcome, err := a.s.Upgrade(a.t.Context(), job); err != nil || outcome != strategy.RebootRequired {
		a.t.Fatalf("upgrade: %v, %v", outcome, err)
	}
}

func (a *appliance) has() string { return strings.Join(strings.Fields(a.Must("ls -A "+folder)), " ") }

// TestReal goes to a good version, to one that does not start and to one that is rolled back, with the
// real systemd-sysupdate and real restarts.
func TestReal(t *testing.T) {
	realhost.Need(t, realhost.Hosts, realhost.Sysupdate)
	t.Parallel()
	a := newAppliance(t)
	ctx := t.Context()
	if err := a.s.Detect(ctx); err != nil {
		t.Fatal(err)
	}
	a.boot(strategy.Boot{Running: "1"})
	if plan, err := a.s.Prepare(ctx, strategy.Job{Progress: func(int, string) {}}); err != nil || !plan.Empty() {
		t.Errorf("without a newer version the plan is %+v, %v", plan, err)
	}

	// A good one, with a power cut between prepare and upgrade, and a newer one after prepare.
	a.release("2")
	job := a.prepare("2", false)
	if got, want := a.has(), ".sysupdate.pending.kiosk_2+3-0.efi kiosk_1.efi"; got != want {
		t.Errorf("prepare leaves %s, not %s", got, want)
	}
	a.release("3")
	a.Cut()
	a.Start()
	a.open()
	if outcome, err := a.s.Resume(ctx, job); err != nil || outcome != strategy.NotDone {
		t.Errorf("resume: %v, %v", outcome, err)
	}
	a.upgrade(job)
	a.reboot(strategy.Boot{Running: "2"})
	if err := a.s.Verify(ctx, job); err != nil || a.has() != "kiosk_1.efi kiosk_2.efi" {
		t.Errorf("verify: %v, with %s", err, a.has())
	}

	// One that does not start.
	a.panics = []string{"3"}
	a.upgrade(a.prepare("3", false))
	a.reboot(strategy.Boot{Running: "2", Failed: "3"})
	a.panics = nil
	a.reboot(strategy.Boot{Running: "2"})

	// One that a release names, though the source has a newer one, and that is rolled back.
	a.release("4")
	a.release("5")
	job = a.prepare("4", true)
	a.upgrade(job)
	a.reboot(strategy.Boot{Running: "4"})
	if outcome, err := a.s.Rollback(ctx, job); err != nil || outcome != strategy.RebootRequired {
		t.Errorf("rollback: %v, %v", outcome, err)
	}
	a.reboot(strategy.Boot{Running: "2"})
	if outcome, err := a.s.Rollback(ctx, job); err != nil || outcome != strategy.Done || a.has() != "kiosk_2.efi kiosk_4+0-0.efi" {
		t.Errorf("rollback after the reboot: %v, %v, with %s", outcome, err, a.has())
	}

	a.refuses()
}

// refuses checks what a host does not install, and that it touches nothing then.
func (a *appliance) refuses() {
	a.t.Helper()
	had := a.has()
	for version, text := range map[string]string{"9": "has no version 9", "1": "version 1 is older than 2"} {
		job := released(strategy.Job{Progress: func(int, string) {}}, version, release.Image{URL: "file:///srv/source"})
		if plan, err := a.s.Prepare(a.t.Context(), job); strategy.ClassOf(err) != message.Artifact || !strings.Contains(err.Error(), text) {
			a.t.Errorf("version %s: %+v, %v", version, plan, err)
		}
	}
	a.Must("sed -i /ProtectVersion/d /etc/sysupdate.d/*")
	if err := a.s.Detect(a.t.Context()); err == nil || !strings.Contains(err.Error(), "ProtectVersion=%A") {
		a.t.Errorf("detect without protection: %v", err)
	}
	if a.has() != had {
		a.t.Errorf("it has %s, and had %s", a.has(), had)
	}
}
