package ostree

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// appliance is a container whose root is a deployment of OSTree of Debian: real are
// its repository, deployments, origins and the restart into another one. The boot loader
// is [appliance.load], which takes the entry of the highest order, as GRUB does.
type appliance struct {
	*realhost.Container
	t   *testing.T
	s   *Strategy
	dir string // on this machine and in the container at the same path
	// broken are the releases that do not start.
	broken []string
}

// prepareRepository makes a repository with one release and a sysroot with its deployment. The
// tree is the container's own, without what takes time; nothing boots its kernel.
const prepareRepository = `set -e
mkdir -p /srv/tree && cd /srv/tree
mkdir -p usr/lib/modules/6 sysroot tmp mnt opt srv boot proc sys dev run var
cp -a /bin /sbin /lib /lib64 . 2>/dev/null || true
cp -a /usr/lib64 /usr/local usr/
(cd /usr && tar -c --exclude='lib/modules' --exclude='*python*' --exclude='*perl*' --exclude='lib/udev/*' --exclude='lib/file' --exclude='lib/apt' \
	--exclude='*/gconv' --exclude='*.a' --exclude='*gprof*' --exclude='*apt-pkg*' --exclude='*dnf*' --exclude='x86_64-linux-gnu-*' bin sbin lib) | tar -x -C usr
mkdir -p usr/share && cp -a /usr/share/dbus-1 usr/share/
cp -a /etc usr/etc && rm -f usr/etc/systemd/system/rauc* && : >usr/etc/machine-id
echo kernel >usr/lib/modules/6/vmlinuz; echo initramfs >usr/lib/modules/6/initramfs.img
ln -s sysroot/ostree ostree; ln -s var/home home; ln -s var/roothome root
ostree --repo=/srv/repo init --mode=bare && ostree --repo=/srv/repo config set core.fsync false
`

const firstRelease = `ostree --repo=/srv/repo commit --branch=appliance --tree=dir=/srv/tree --owner-uid=0 --owner-gid=0 --add-metadata-string=version=0`

// release is one that has another file than the one before.
const release = `set -e
mkdir -p /var/tmp/release/usr/etc; echo %[1]s >/var/tmp/release/usr/etc/appliance
ostree --repo=%[2]s commit --branch=appliance --tree=ref=appliance --tree=dir=/var/tmp/release --owner-uid=0 --owner-gid=0 --add-metadata-string=version=%[1]s
`

const prepareSysroot = `set -e
mkdir /srv/sysroot && cd /srv/sysroot
ostree admin init-fs . && ostree admin --sysroot=. os-init appliance
ostree --repo=ostree/repo config set sysroot.bootloader none
ostree --repo=ostree/repo remote add --no-gpg-verify origin file:///mnt appliance
ostree --repo=ostree/repo pull-local --remote=origin /srv/repo appliance
ostree admin --sysroot=. deploy --os=appliance --karg=rw origin:appliance
`

// newAppliance makes a machine with release 1. install adds to the system that becomes it.
func newAppliance(t *testing.T, install func(c *realhost.Container)) *appliance {
	t.Helper()
	a := &appliance{t: t, dir: t.TempDir()}
	a.Container = realhost.NewContainer(t, realhost.ContainerOptions{Tree: realhost.Images, Size: "2g", Loader: a.load})
	install(a.Container)
	a.Start()
	a.Must(prepareRepository)
	a.Must(firstRelease)
	a.Must(fmt.Sprintf(release, "1", "/srv/repo"))
	a.Must(prepareSysroot)
	a.Cut()
	a.Start()
	a.open()
	return a
}

// open opens the strategy, whose programs run in the container.
func (a *appliance) open() {
	a.t.Helper()
	var err error
	a.s, err = New(Options{StateDir: a.dir, root: a.Inside("/"), run: func(ctx context.Context, name string, args ...string) (string, error) {
		out, err := a.Run(ctx, strings.Join(append([]string{name}, args...), " ")+" 2>"+a.dir+"/said")
		if err != nil {
			said, _ := os.ReadFile(filepath.Join(a.dir, "said"))
			return out, explain(ctx, name, args, string(said), err)
		}
		return out, nil
	}})
	if err != nil {
		a.t.Fatal(err)
	}
}

// release makes a release.
func (a *appliance) release(version string) {
	a.t.Helper()
	a.Must(fmt.Sprintf(release, version, "/mnt"))
}

var entryVersion, entryRoot = regexp.MustCompile(`(?m)^version (\d+)`), regexp.MustCompile(`ostree=(\S+)`)

// load is the boot loader. Without entries the container starts as it is, to be made.
func (a *appliance) load(root string) ([]string, error) {
	sysroot := a.Path("/srv/sysroot")
	entries, err := filepath.Glob(sysroot + "/boot/loader/entries/*.conf")
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	var texts []string
	for _, entry := range entries {
		text, err := os.ReadFile(entry)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	slices.SortFunc(texts, func(x, y string) int { return strings.Compare(entryVersion.FindString(y), entryVersion.FindString(x)) })
	for _, text := range texts {
		link, err := os.Readlink(sysroot + entryRoot.FindStringSubmatch(text)[1])
		if err != nil {
			return nil, err
		}
		below := "/ostree/deploy/appliance/deploy/" + filepath.Base(link)
		body, err := os.ReadFile(sysroot + below + "/etc/appliance")
		if err != nil {
			return nil, err
		}
		if slices.Contains(a.broken, strings.TrimSpace(string(body))) {
			continue
		}
		a.WriteFile("/srv/booted", time.Now().String())
		disk := root + "/srv/sysroot"
		return []string{
			"--directory=" + disk + below, "--bind=" + disk + ":/sysroot", "--bind=" + disk + "/ostree/deploy/appliance/var:/var",
			"--bind=" + disk + "/boot:/boot", "--bind=" + root + "/srv/repo:/mnt", "--bind=" + a.dir, "--bind-ro=" + root + "/srv/booted:/run/ostree-booted",
		}, nil
	}
	return nil, fmt.Errorf("no deployment starts")
}

// reboot restarts the machine and opens the strategy anew.
func (a *appliance) reboot() {
	a.t.Helper()
	boots := a.Boots()
	_, _ = a.Run(a.t.Context(), "systemctl reboot")
	realhost.Until(a.t, "the machine starts again", time.Minute, func() bool { return a.Boots() > boots })
	a.BootID()
	a.open()
}

func (a *appliance) runs() string { return strings.TrimSpace(a.Must("cat /etc/appliance")) }

func (a *appliance) job(plan message.ChangeSet) strategy.Job {
	return strategy.Job{Plan: plan, Progress: func(int, string) {}}
}

// prepare expects a plan from one release to another.
func (a *appliance) prepare(from, to string) strategy.Job {
	a.t.Helper()
	plan, err := a.s.Prepare(a.t.Context(), a.job(message.ChangeSet{}))
	if err != nil || len(plan.Changes) != 1 || !strings.HasPrefix(plan.Changes[0].From, from+" (") || !strings.HasPrefix(plan.Changes[0].To, to+" (") {
		a.t.Fatalf("prepare: %+v, %v", plan, err)
	}
	return a.job(plan)
}

func (a *appliance) upgrade(job strategy.Job) {
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
func (a *appliance) boot(running, failed string) {
	a.t.Helper()
	boot, err := a.s.Booted(a.t.Context())
	if err != nil || !strings.HasPrefix(boot.Running, running+" (") || (boot.Failed != "") != (failed != "") || failed != "" && !strings.HasPrefix(boot.Failed, failed+" (") {
		a.t.Fatalf("boot %+v, %v; want %s and %q", boot, err, running, failed)
	}
	if err := a.s.Confirm(a.t.Context(), boot); err != nil {
		a.t.Fatal(err)
	}
}

func (a *appliance) origins() string {
	return a.Must("grep -h refspec /ostree/deploy/appliance/deploy/*.origin | sort -u")
}

// TestReal goes to a good release, to one that does not start and to one that is rolled
// back, with the real OSTree and real restarts.
func TestReal(t *testing.T) {
	realhost.Need(t, realhost.Hosts, realhost.Images)
	t.Parallel()
	a := newAppliance(t, func(*realhost.Container) {})
	ctx := t.Context()
	if err := a.s.Detect(ctx); err != nil {
		t.Fatal(err)
	}
	if plan, err := a.s.Plan(ctx, a.job(message.ChangeSet{})); err != nil || !plan.Empty() {
		t.Errorf("plan: %+v, %v", plan, err)
	}
	a.Must("ostree admin pin 0")

	a.release("2")
	job := a.prepare("1", "2")
	if a.runs() != "1" || strings.Contains(a.Must("ostree admin status"), "pending") {
		t.Error("prepare has deployed")
	}
	if plan, err := a.s.Plan(ctx, a.job(message.ChangeSet{})); err != nil || !slices.Equal(plan.Changes, job.Plan.Changes) {
		t.Errorf("plan after prepare: %+v, %v", plan, err)
	}
	// The branch goes on between prepare and upgrade: what was planned is deployed.
	a.release("2b")
	a.Must("ostree pull origin appliance")
	a.upgrade(job)
	a.reboot()
	if err := a.s.Verify(ctx, job); err != nil || a.runs() != "2" {
		t.Fatalf("%s runs: %v", a.runs(), err)
	}
	a.boot("2", "")

	a.refuses()
	a.goesBack()
	a.isRolledBack()
	if status := a.Must("ostree admin status"); !strings.Contains(status, "Version: 1\n") || strings.Count(status, "Pinned: yes") != 1 {
		t.Errorf("the pinned deployment is gone, or another is pinned:\n%s", status)
	}
}

// refuses checks that a commit without the signature that the remote wants is not fetched,
// and one with it is.
func (a *appliance) refuses() {
	t, ctx := a.t, a.t.Context()
	refused := func(what, reason string) {
		t.Helper()
		plan, err := a.s.Prepare(ctx, a.job(message.ChangeSet{}))
		if strategy.ClassOf(err) != message.Artifact || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %+v, %v of class %q", what, plan, err, strategy.ClassOf(err))
		}
	}
	for _, who := range []string{"vendor", "stranger"} {
		a.Must("export GNUPGHOME=/var/tmp/" + who + "; mkdir -m 700 $GNUPGHOME && gpg --batch --passphrase '' --quick-gen-key " + who + " && gpg --export >$GNUPGHOME/key")
	}
	signed := func(repository, commit, who string) {
		t.Helper()
		a.Must("export GNUPGHOME=/var/tmp/" + who + "; ostree --repo=" + repository + " gpg-sign --gpg-homedir=$GNUPGHOME " + commit + " $(gpg --list-keys --with-colons | sed -n '/^fpr/{s/[^0-9A-F]//g;p;q}')")
	}
	a.release("2c")
	a.Must(`ostree config set 'remote "origin".gpg-verify' true && ostree remote gpg-import -k /var/tmp/vendor/key origin`)
	_, err := a.s.Prepare(ctx, a.job(message.ChangeSet{}))
	if strategy.ClassOf(err) != message.Artifact {
		t.Fatalf("a host whose own system has no signature: %v", err)
	}
	commands := realhost.Remedy(t, remedy.OSTreeSign, err.Error())
	t.Logf("it is followed: %s", commands)
	a.Must("export GNUPGHOME=/var/tmp/vendor; " + strings.ReplaceAll(commands, "KEY", "$(gpg --list-keys --with-colons | sed -n '/^fpr/{s/[^0-9A-F]//g;p;q}')"))
	refused("a commit without a signature", "cannot ask for the newest commit")
	signed("/mnt", "appliance", "stranger")
	refused("a commit that a stranger has signed", "public key not found")
	signed("/mnt", "appliance", "vendor")
	if plan, err := a.s.Prepare(ctx, a.job(message.ChangeSet{})); err != nil || plan.Empty() {
		t.Errorf("a commit that the vendor has signed: %+v, %v", plan, err)
	}
	a.Must(`ostree config set 'remote "origin".gpg-verify' false`)

	a.Must("mv /mnt/refs /mnt/gone")
	if plan, err := a.s.Prepare(ctx, a.job(message.ChangeSet{})); strategy.ClassOf(err) == "" {
		t.Errorf("a repository without the branch: %+v, %v", plan, err)
	}
	a.Must("mv /mnt/gone /mnt/refs")
}

// goesBack goes to a release that does not start.
func (a *appliance) goesBack() {
	t, ctx := a.t, a.t.Context()
	a.release("3")
	a.broken = []string{"3"}
	job := a.prepare("2", "3")
	a.upgrade(job)
	a.reboot()
	if err := a.s.Verify(ctx, job); strategy.ClassOf(err) != message.Boot || a.runs() != "2" {
		t.Errorf("%s runs, and verify says %v", a.runs(), err)
	}
	a.boot("2", "3")
	a.boot("2", "")
	a.broken = nil
	a.reboot()
	a.boot("2", "")
	rejected := a.job(message.ChangeSet{})
	rejected.Rejected = message.Rejected{"appliance": {job.Plan.Changes[0].To}}
	if plan, err := a.s.Prepare(ctx, rejected); err != nil || len(plan.Changes) != 0 || len(plan.Held) != 1 {
		t.Errorf("a release that was rolled back: %+v, %v", plan, err)
	}
}

// isRolledBack rolls back a release after its start, and then before it.
func (a *appliance) isRolledBack() {
	t, ctx := a.t, a.t.Context()
	a.release("4")
	job := a.prepare("2", "4")
	a.upgrade(job)
	a.reboot()
	if a.runs() != "4" {
		t.Fatalf("%s runs", a.runs())
	}
	for range 2 {
		if outcome, err := a.s.Rollback(ctx, job); err != nil || outcome != strategy.RebootRequired {
			t.Fatalf("rollback: %v, %v", outcome, err)
		}
	}
	a.reboot()
	if outcome, err := a.s.Rollback(ctx, job); err != nil || outcome != strategy.Done || a.runs() != "2" {
		t.Errorf("rollback after the reboot: %v, %v, %s runs", outcome, err, a.runs())
	}
	a.boot("2", "")
	if got := a.origins(); got != "refspec=origin:appliance\n" {
		t.Errorf("after the way back the host follows:\n%s", got)
	}

	job = a.prepare("2", "4")
	a.upgrade(job)
	if outcome, err := a.s.Rollback(ctx, job); err != nil || outcome != strategy.Done {
		t.Errorf("rollback before the reboot: %v, %v", outcome, err)
	}
	a.reboot()
	if a.boot("2", ""); a.runs() != "2" {
		t.Errorf("%s runs", a.runs())
	}
}

// TestRealCut cuts the power in fetching and in deploying: what runs is always whole,
// and the plan is carried out after that.
func TestRealCut(t *testing.T) {
	realhost.Need(t, realhost.Hosts, realhost.Images)
	t.Parallel()
	a := newAppliance(t, func(*realhost.Container) {})
	ctx := t.Context()
	for i := range realhost.Times(6, 6, 50) {
		from, to := fmt.Sprint(i+1), fmt.Sprint(i+2)
		a.release(to)
		act := func(ctx context.Context) { _, _ = a.s.Prepare(ctx, a.job(message.ChangeSet{})) }
		var job strategy.Job
		if i%2 == 1 {
			job = a.prepare(from, to)
			act = func(ctx context.Context) { _, _ = a.s.Upgrade(ctx, job) }
		}
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		ended := make(chan struct{})
		go func() { defer close(ended); act(limited) }()
		pause := time.Duration(rand.Int64N(int64(700 * time.Millisecond)))
		time.Sleep(pause)
		a.Cut()
		cancel()
		<-ended
		a.Start()
		a.open()
		if i%2 == 0 {
			if a.runs() != from {
				t.Fatalf("%s runs after a cut in prepare", a.runs())
			}
			job = a.prepare(from, to)
		}
		outcome, err := a.s.Resume(ctx, job)
		t.Logf("cut %s after the begin of %s: %s runs, outcome %v, %v", pause, map[int]string{0: "prepare", 1: "upgrade"}[i%2], a.runs(), outcome, err)
		if err != nil {
			t.Fatal(err)
		}
		if outcome == strategy.NotDone {
			a.upgrade(job)
			a.reboot()
		}
		if missing, err := a.s.Missing(ctx, job); err != nil || len(missing) > 0 || a.runs() != to {
			t.Fatalf("missing %v, %v; %s runs", missing, err, a.runs())
		}
		a.boot(to, "")
	}
}
