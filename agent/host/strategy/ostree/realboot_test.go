package ostree

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

// bootApart is a virtual machine with a sysroot of OSTree whose /boot is a file system of its own,
// both on disks that lose what was not flushed. Its own root is another system: the program
// runs in the first deployment as if that had started.
type bootApart struct {
	*realhost.VM
	t    *testing.T
	plan message.ChangeSet
}

const (
	sysroot = "/srv/sysroot"
	// entered makes the deployment that runs the root of what follows.
	entered = `set -e; d=$(echo ` + sysroot + `/ostree/deploy/appliance/deploy/*.0 | tr ' ' '\n' | xargs -n1 sh -c 'grep -lx 1 $0/etc/appliance' | xargs dirname | xargs dirname)
if ! mountpoint -q $d/mnt; then
	touch /run/ostree-booted
	for b in dev proc sys run; do mount --bind /$b $d/$b; done
	mount --bind ` + sysroot + ` $d/sysroot; mount --bind ` + sysroot + `/boot $d/boot
	mount --bind ` + sysroot + `/ostree/deploy/appliance/var $d/var; mount --bind /srv/repo $d/mnt
fi
chroot $d `
	// next prints the release that the boot loader would start, after a look at its kernel.
	next = `set -e; cd ` + sysroot + `
e=$(grep -H '^version' boot/loader/entries/*.conf | sed 's/\(.*\):version \(.*\)/\2 \1/' | sort -rn | head -n1 | cut -d' ' -f2)
test "$(cat boot$(sed -n 's/^linux //p' $e))" = kernel; test "$(cat boot$(sed -n 's/^initrd //p' $e))" = initramfs
cat .$(sed -n 's/.*ostree=\([^ ]*\).*/\1/p' $e)/etc/appliance`
)

func newBootApart(t *testing.T) (*bootApart, *realhost.Power) {
	t.Helper()
	c := realhost.NewContainer(t, realhost.ContainerOptions{Tree: realhost.Images, Size: "2g"})
	program, err := os.ReadFile(realhost.Program(t, "0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	for _, script := range []string{prepareRepository, firstRelease, fmt.Sprintf(release, "1", "/srv/repo"), prepareSysroot, fmt.Sprintf(release, "2", "/srv/repo")} {
		c.Must(script)
	}
	c.Must("rm -rf /srv/tree")
	c.Cut()
	c.WriteFile("/srv/repo/agent", string(program))
	b := &bootApart{VM: realhost.NewVM(t, c), t: t}
	power := b.Volatile(realhost.Mount{Path: sysroot, Kind: "ext4", Options: "commit=300"}, realhost.Mount{Path: sysroot + "/boot", Kind: "ext4", Options: "commit=300"})
	b.Start()
	return b, power
}

// act has the program carry out an action, and returns its exit status.
func (b *bootApart) act(action string) (status int, printed string, err error) {
	b.t.Helper()
	text, err := json.Marshal(map[string]any{
		"format": 1, "action": action, "tenant": "acme", "host": "h01", "run": 7, "boot-id": "b", "plan": b.plan,
		"options": map[string]any{"state": "/var/lib/osupgrade-worker", "ostree": map[string]any{}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	printed, err = b.Run(b.t.Context(), entered+"/mnt/agent strategy ostree "+action+" <<'END'\n"+string(text)+"\nEND\n")
	if ended, ok := errors.AsType[realhost.Status](err); ok {
		return int(ended), printed, nil
	}
	return 0, printed, err
}

// prepare prepares the newest release.
func (b *bootApart) prepare() {
	b.t.Helper()
	b.plan = message.ChangeSet{}
	status, printed, err := b.act("prepare")
	for line := range strings.Lines(printed) {
		var told struct {
			Plan message.ChangeSet `json:"plan"`
		}
		if json.Unmarshal([]byte(line), &told) == nil && len(told.Plan.Changes) > 0 {
			b.plan = told.Plan
		}
	}
	if err != nil || status != 0 || len(b.plan.Changes) != 1 {
		b.t.Fatalf("prepare ends with %d, %v:\n%s", status, err, printed)
	}
}

// lose cuts the power, and has all disks lose what was not flushed.
func (b *bootApart) lose() {
	b.t.Helper()
	b.Cut()
	b.Start()
}

// starts checks which release would start, and that nothing of it is lost.
func (b *bootApart) starts(versions ...string) {
	b.t.Helper()
	got := strings.TrimSpace(b.Must(next))
	for _, version := range versions {
		if got == version {
			b.Must("ostree fsck -q --repo=" + sysroot + "/ostree/repo")
			return
		}
	}
	b.t.Errorf("after the power cut %q would start, want one of %q", got, versions)
}

// TestRealBootApart cuts the power when an upgrade says that its reboot is all that is left, and
// then at flushes of /boot in the midst of upgrades. The boot loader has the new release in the
// first case, and the old or the new one in the others, each with its kernel; what takes the upgrade up again
// completes it.
func TestRealBootApart(t *testing.T) {
	realhost.Need(t, realhost.Hosts, realhost.Images)
	t.Parallel()
	b, power := newBootApart(t)
	b.prepare()
	if status, printed, err := b.act("upgrade"); status != 10 || err != nil {
		t.Fatalf("upgrade ends with %d, %v:\n%s", status, err, printed)
	}
	b.lose()
	b.starts("2")
	before := "2"
	realhost.Strike(t, "power cut at a flush of /boot", realhost.Times(0, 0, 6), func(n int) bool {
		version := fmt.Sprint(n + 3)
		b.Must(fmt.Sprintf(release, version, "/srv/repo"))
		b.prepare()
		aim := realhost.Aim{Mount: sysroot + "/boot", Flushes: rand.IntN(6)} //nolint:gosec // any of them
		hit := power.CutAt(aim)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _, _ = b.act("upgrade")
		}()
		struck := false
		select {
		case <-hit:
			struck = true
			b.Cut()
			<-ended
		case <-ended:
			b.Cut()
		case <-time.After(10 * time.Minute):
			t.Fatal("the upgrade does not end")
		}
		b.Start()
		t.Logf("cut at flush %d: %v", aim.Flushes, struck)
		b.starts(before, version)
		status, printed, err := b.act("resume")
		if status == 11 {
			status, printed, err = b.act("upgrade")
		}
		if status != 10 || err != nil {
			t.Fatalf("attempt %d: it is taken up again, and ends with %d, %v:\n%s", n, status, err, printed)
		}
		b.lose()
		b.starts(version)
		before = version
		return struck
	})
}
