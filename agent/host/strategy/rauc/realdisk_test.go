package rauc

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// slotMachine is a virtual machine whose slots are files of one file system and whose grubenv
// is in another one, on disks that lose what was not flushed. It never starts a slot: the real
// RAUC believes that slot A runs.
type slotMachine struct {
	*realhost.VM
	t    *testing.T
	plan message.ChangeSet
}

// slotMiB is the size of an image.
const slotMiB = 8

func newSlotMachine(t *testing.T, versions ...string) (*slotMachine, *realhost.Power) {
	t.Helper()
	c := realhost.NewContainer(t, realhost.ContainerOptions{Tree: realhost.Images})
	program, err := os.ReadFile(realhost.Program(t, "0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	c.WriteFile("/etc/rauc/system.conf", strings.NewReplacer(grubenv, "/grubenv/grubenv", slotsDir, "/slots").Replace(realSystem))
	c.WriteFile("/etc/systemd/system/rauc.service.d/slot.conf", "[Service]\nExecStart=\nExecStart=/usr/bin/rauc service --override-boot-slot=A\n")
	c.WriteFile("/grubenv/grubenv", environment(map[string]string{"ORDER": "A B", "A_OK": "1", "A_TRY": "0", "B_OK": "0", "B_TRY": "0"}))
	c.Start()
	c.Must(fmt.Sprintf(`set -e; mkdir /slots && cd /slots && echo version 1 >A && : >B && truncate -s %dM A B
		cd /srv && openssl req -x509 -newkey rsa:2048 -nodes -keyout cert.key -out cert.pem -subj /CN=cert -days 3650 2>/dev/null && cp cert.pem /etc/rauc/
		for v in %s; do
			rm -rf bundle && mkdir bundle && { echo "version $v"; head -c %dM /dev/urandom; } >bundle/rootfs.img
			printf "[update]\ncompatible=appliance\nversion=$v\n[bundle]\nformat=plain\n[image.rootfs]\nfilename=rootfs.img\n" >bundle/manifest.raucm
			rauc --cert cert.pem --key cert.key bundle bundle $v.raucb >&2
			stat -c %%s bundle/rootfs.img >$v.size && sha256sum <bundle/rootfs.img >$v.sum
		done`, slotMiB+1, strings.Join(versions, " "), slotMiB))
	c.Cut()
	c.WriteFile("/usr/local/bin/osupgrade-agent", string(program))
	m := &slotMachine{VM: realhost.NewVM(t, c), t: t}
	power := m.Volatile(realhost.Mount{Path: "/slots", Kind: "ext4", Options: "commit=300"}, realhost.Mount{Path: "/grubenv", Kind: "ext4", Options: "commit=300"})
	m.Start()
	return m, power
}

// act has the program carry out an action for a version, and returns its exit status.
func (m *slotMachine) act(action, version string) (status int, printed string, err error) {
	m.t.Helper()
	text, err := json.Marshal(map[string]any{
		"format": 1, "action": action, "tenant": "acme", "host": "h01", "run": 7, "boot-id": "b", "plan": m.plan,
		"options": map[string]any{"state": "/var/lib/osupgrade-worker", "rauc": map[string]any{"Bundle": "/srv/" + version + ".raucb"}},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	printed, err = m.Run(m.t.Context(), "chmod 755 /usr/local/bin/osupgrade-agent; /usr/local/bin/osupgrade-agent strategy rauc "+action+" <<'END'\n"+string(text)+"\nEND\n")
	if ended, ok := errors.AsType[realhost.Status](err); ok {
		return int(ended), printed, nil
	}
	return 0, printed, err
}

// retried is act, again as long as that fails for a reason that passes: on a busy machine RAUC starts
// more slowly than D-Bus waits for it.
func (m *slotMachine) retried(action, version string) (status int, printed string, err error) {
	m.t.Helper()
	const transient = 75
	realhost.UntilOn(m.t, m, action+" fails for no passing reason", 5*time.Minute, func() bool {
		status, printed, err = m.act(action, version)
		return status != transient
	})
	return status, printed, err
}

func (m *slotMachine) prepare(version string) {
	m.t.Helper()
	m.plan = message.ChangeSet{}
	status, printed, err := m.retried("prepare", version)
	for line := range strings.Lines(printed) {
		var told struct {
			Plan message.ChangeSet `json:"plan"`
		}
		if json.Unmarshal([]byte(line), &told) == nil && len(told.Plan.Changes) > 0 {
			m.plan = told.Plan
		}
	}
	if err != nil || status != 0 || len(m.plan.Changes) != 1 {
		m.t.Fatalf("prepare ends with %d, %v:\n%s", status, err, printed)
	}
}

// starts returns the slot that GRUB would start.
func (m *slotMachine) starts() string {
	m.t.Helper()
	return strings.TrimSpace(m.Must(`. /dev/stdin <<<"$(grep -a = /grubenv/grubenv | sed 's/=\(.*\)/="\1"/')"
for s in $ORDER; do ok=${s}_OK; try=${s}_TRY; if [ "${!ok}" = 1 ] && [ "${!try}" = 0 ]; then echo $s; exit 0; fi; done; echo none`))
}

// whole fails the test unless slot B would start, with each byte of the image of one of the versions.
func (m *slotMachine) whole(versions ...string) {
	m.t.Helper()
	if slot := m.starts(); slot != "B" {
		m.t.Errorf("slot %s would start, not B", slot)
	}
	for _, version := range versions {
		if m.Must("head -c $(cat /srv/"+version+".size) /slots/B | sha256sum") == m.Must("cat /srv/"+version+".sum") {
			return
		}
	}
	m.t.Errorf("slot B would start and is not whole, of one of the versions %v", versions)
}

// lose cuts the power, and has all disks lose what was not flushed.
func (m *slotMachine) lose() {
	m.t.Helper()
	m.Cut()
	m.Start()
}

// TestRealSlotsLosePower cuts the power when an upgrade says that its reboot is all that is left,
// and then at flushes of the disk of grubenv in the midst of upgrades. The slot that would start is
// whole each time, and what takes the upgrade up again completes it.
func TestRealSlotsLosePower(t *testing.T) {
	realhost.Need(t, realhost.Hosts, realhost.Images)
	t.Parallel()
	cuts, versions := realhost.Times(0, 0, 6), []string{"2"}
	for n := range realhost.Attempts(cuts) {
		versions = append(versions, fmt.Sprint(n+3))
	}
	m, power := newSlotMachine(t, versions...)
	m.prepare("2")
	if status, printed, err := m.retried("upgrade", "2"); status != 10 || err != nil {
		t.Fatalf("upgrade ends with %d, %v:\n%s", status, err, printed)
	}
	m.lose()
	m.whole("2")
	realhost.Strike(t, "power cut at a flush of grubenv", cuts, func(n int) bool {
		version := versions[n+1]
		m.prepare(version)
		aim := realhost.Aim{Mount: "/grubenv", Flushes: rand.IntN(6)}
		hit, ended := power.CutAt(aim), make(chan struct{})
		go func() {
			defer close(ended)
			_, _, _ = m.act("upgrade", version)
		}()
		struck := false
		select {
		case <-hit:
			struck = true
			m.Cut()
			<-ended
		case <-ended:
			m.Cut()
		case <-time.After(10 * time.Minute):
			t.Fatal("the upgrade does not end")
		}
		m.Start()
		slot := m.starts()
		t.Logf("cut at flush %d: %v; slot %s would start", aim.Flushes, struck, slot)
		if slot == "B" {
			m.whole(version, versions[n]) // The one of before was to start next, too.
		} else if slot != "A" {
			t.Errorf("attempt %d: slot %s would start", n, slot)
		}
		status, printed, err := m.retried("resume", version)
		if status == 11 {
			status, printed, err = m.retried("upgrade", version)
		}
		if status != 10 || err != nil {
			t.Fatalf("attempt %d: it is taken up again, and ends with %d, %v:\n%s", n, status, err, printed)
		}
		m.lose()
		m.whole(version)
		return struck
	})
}
