// Package realhost gives tests real operating systems: Debian under systemd in a
// container that boots in less than a second and really reboots, package
// repositories on loopback, and a site that is the real program.
//
// Tests import it, and nothing of the product does. It decides nothing about
// upgrades: what a test asserts stands in the test.
//
// A test on a real host has a name that begins with TestReal, calls [Need] first, and
// reaches nothing beyond loopback. The trees are built before, by make images.
//
//	func TestRealHeldPackage(t *testing.T) {
//		realhost.Need(t, realhost.Quick)
//		t.Parallel()
//		repository := realhost.NewRepository(t)
//		repository.Publish(realhost.Deb{Name: "appliance", Version: "1.0"})
//		c := realhost.NewContainer(t, realhost.ContainerOptions{})
//		c.AddRepository("appliance", repository)
//		c.Start()
//		c.Must("apt-get -q update && apt-get -q -y install appliance && apt-mark hold appliance")
//		...
//	}
//
// Every process that a test starts ends with the test, also when the test is killed:
// disk and processes are in namespaces whose first process ends with the test.
//
// # What is real
//
// A container is Debian under systemd-nspawn. It boots in less than a second; systemd,
// D-Bus, apt, services and reboots with a new boot id are real. Its kernel is that of this
// machine, and it loses nothing in a power cut; with LosesUnsynced it loses what was not
// synced, and a cut costs seconds. Its disk is a layer in memory above a tree that nothing
// changes. Each container has a control group of its own: in a common one, the
// systemd of one container removes the groups of services that start in another.
//
// A virtual machine (NewVM, of a container that is off) has its own kernel and loses in a
// power cut what was not synced. It boots in 20 s of processor time, so only one runs at a
// time, and only in tests of level Hosts or Long. Its processor is emulated, because a
// /dev/kvm that can be opened does not prove that a kernel boots with it;
// REALHOST_ACCEL=kvm uses it where it is known to work. With VM.Volatile its disks lose what
// no flush has followed, and Power.CutAt cuts the power at a chosen flush.
//
// Repositories are made, signed and served by the test, and break as real ones do. A site
// is the real program. apply_test.go is the whole way from terraform apply to a new boot
// id; the guide on apt shows it (make record). promotion_test.go is the way from one release
// to the next and back.
//
// # How to write a test
//
//   - Name it TestReal… in the package that it tests, with Need(t, Quick) as its first line:
//     make finds it by the name and the import. A test that needs more than some seconds is
//     of level Hosts (make test-hosts) or Long (make test-long). Times repeats less in make
//     test.
//   - Run it as root, after make images: go test ./agent/PACKAGE -run TestReal. Without root
//     or tree it is skipped. REALHOST=hosts or long runs those of a higher level.
//   - Files of a container that is off are written at once (WriteFile, Path). In one that is
//     on, Must runs a command. Cut is a power cut, and after systemctl reboot the container
//     boots by itself.
//   - Wait with Until, never for a fixed time.
//   - An attack that depends on its moment is repeated by Strike until it has struck. What a
//     failure tells a person to do is followed by Remedy and Follow, from what was printed.
//
// make test names in its last lines each of these tests that this machine could not run;
// with CI set, that fails.
package realhost

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Level says how long a test takes, and so which target of make runs it.
type Level int

const (
	// Quick tests take seconds and need a container: make test runs them.
	Quick Level = iota + 1
	// Hosts tests take up to a minute or two, or a virtual machine: make test-hosts.
	Hosts
	// Long tests take longer: make test-long.
	Long
)

// Variable chooses the tests: "quick", "hosts" or "long" for the tests up to that
// level, "off" for none. Unset is "quick", but a test that cannot run is then skipped
// as any other. Set, its name and the reason go to the list that make prints in its
// last lines, and with CI set the test fails.
const Variable = "REALHOST"

var levels = map[string]Level{"quick": Quick, "hosts": Hosts, "long": Long}

// Tree is the name of a tree that make images builds.
type Tree string

const (
	// Bookworm is Debian 12 with systemd, dbus, apt and a kernel.
	Bookworm Tree = "bookworm"
	// Trixie is the same of Debian 13.
	Trixie Tree = "trixie"
	// TrixieArchives are the packages that Bookworm lacks to become Trixie; see Archives.
	TrixieArchives Tree = "trixie-archives"
	// Images is Bookworm with RAUC, OSTree and dnf.
	Images Tree = "images"
	// TrixieImages is Trixie with RAUC.
	TrixieImages Tree = "trixie-images"
	// DNF5 is the Debian to come, which alone has dnf5.
	DNF5 Tree = "dnf5"
	// Sysupdate is the Debian to come, which alone has systemd-sysupdate.
	Sysupdate Tree = "sysupdate"
)

// spare are trees of a Debian that is not released: a mirror need not have it, so a CI may
// skip their tests. make names them in its last lines.
var spare = []Tree{DNF5, Sysupdate}

// Need skips the test unless tests of its level are wanted and the machine can run
// them on the trees (Bookworm if none is named).
func Need(t testing.TB, level Level, trees ...Tree) {
	t.Helper()
	if name, _, _ := strings.Cut(t.Name(), "/"); !strings.HasPrefix(name, "TestReal") {
		t.Fatalf("%s: a test on a real host has a name that begins with TestReal, by which make finds it", t.Name())
	}
	wanted := os.Getenv(Variable)
	what, reason := judge(wanted, os.Getenv("CI") != "", level, func() lacking { return lacks(level, trees) })
	switch what {
	case noted:
		note(t, reason)
		t.Skip(reason)
	case skipped:
		t.Skip(reason)
	case failed:
		t.Fatal(reason)
	case runs:
	}
}

// verdict is what becomes of a test.
type verdict int

const (
	runs verdict = iota
	// skipped is a test that was not asked for.
	skipped
	// noted is one that was, and cannot run: make names it in its last lines.
	noted
	failed
)

// lacking is what a machine lacks for a test; nothing if reason is empty.
type lacking struct {
	reason string
	// spare is true for what a CI may lack.
	spare bool
}

// judge decides what becomes of a test of this level; wanted is the value of Variable.
// lacks returns what the machine lacks.
func judge(wanted string, ci bool, level Level, lacks func() lacking) (verdict, string) {
	limit, known := levels[wanted]
	switch {
	case wanted == "off":
		return skipped, Variable + "=off"
	case wanted == "":
		limit = Quick
	case !known:
		return failed, fmt.Sprintf("%s=%q: use quick, hosts, long or off", Variable, wanted)
	}
	if level > limit {
		return skipped, fmt.Sprintf("takes longer than tests may by default; it runs with %s=%s", Variable, map[Level]string{Hosts: "hosts", Long: "long"}[level])
	}
	missing := lacks()
	switch {
	case missing.reason == "":
		return runs, ""
	case wanted == "":
		return skipped, missing.reason
	case ci && !missing.spare:
		return failed, "this machine cannot run it, and a CI must not skip it: " + missing.reason
	}
	return noted, missing.reason
}

// lacks says what this machine lacks for tests on the trees.
func lacks(level Level, trees []Tree) lacking {
	if reason := lack(); reason != "" {
		return lacking{reason: reason}
	}
	if reason := lacksTools(vmTools); level > Quick && reason != "" {
		return lacking{reason: reason}
	}
	if reason := lacksTools(longTools); level > Hosts && reason != "" {
		return lacking{reason: reason}
	}
	if reason := lacksSlots(); level > Hosts && reason != "" {
		return lacking{reason: reason}
	}
	if len(trees) == 0 {
		trees = []Tree{Bookworm}
	}
	for _, tree := range trees {
		if _, err := os.Stat(filepath.Join(tree.dir(), ".built")); err != nil {
			return lacking{fmt.Sprintf("the tree %s is not built; run as root: make images TREES=%s", tree, tree), slices.Contains(spare, tree)}
		}
	}
	return lacking{}
}

// Times is how often a test repeats what depends on chance: few times in make test,
// and more in the targets that have the time.
func Times(quick, hosts, long int) int {
	switch levels[os.Getenv(Variable)] {
	case Hosts:
		return hosts
	case Long:
		return long
	default:
		return quick
	}
}

// Programs and the Debian packages that they are in. tools/realhost.sh installs them.
var (
	containerTools = [][2]string{{"systemd-nspawn", "systemd-container"}, {"nsenter", "util-linux"}, {"unshare", "util-linux"}}
	vmTools        = [][2]string{{"qemu-system-x86_64", "qemu-system-x86"}, {"busybox", "busybox-static"}, {"mke2fs", "e2fsprogs"}, {"losetup", "mount"}}
	longTools      = [][2]string{{"mkfs.xfs", "xfsprogs"}, {"mkfs.btrfs", "btrfs-progs"}}
)

func lacksTools(tools [][2]string) string {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool[0]); err != nil {
			return fmt.Sprintf("needs %s (Debian: %s)", tool[0], tool[1])
		}
	}
	return ""
}

// lack says what this machine lacks for containers; it is empty if it lacks nothing.
var lack = sync.OnceValue(func() string {
	if os.Geteuid() != 0 {
		return "needs root"
	}
	if reason := lacksTools(containerTools); reason != "" {
		return reason
	}
	dir, err := os.MkdirTemp("", "realhost-probe")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = os.Remove(dir) }()
	// A machine that is a container itself may forbid what a container needs.
	probe := `set -e; mount -t tmpfs probe "$1"; mkdir "$1/lower" "$1/upper" "$1/work" "$1/root"
		mount -t overlay -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" probe "$1/root"`
	if out, err := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", probe, "sh", dir).CombinedOutput(); err != nil { //nolint:gosec,noctx // our own probe
		return fmt.Sprintf("cannot mount an overlay: %s", strings.TrimSpace(string(out)))
	}
	return ""
})

// note adds the test to the list of those that were skipped.
func note(t testing.TB, reason string) {
	t.Helper()
	dir := filepath.Join(root(), ".cache", "realhost")
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // nothing secret
		t.Fatal(err)
	}
	list, err := os.OpenFile(filepath.Join(dir, "skipped"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // nothing secret
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = list.Close() }()
	if _, err := fmt.Fprintf(list, "%s: %s\n", t.Name(), reason); err != nil {
		t.Fatal(err)
	}
}

// root is the folder of the repository: the one above this file.
var root = sync.OnceValue(func() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		panic("realhost: the place of the source is not known; build tests without -trimpath")
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(file))))
})

func (tree Tree) dir() string {
	return filepath.Join(root(), ".cache", "images", string(tree)+".tree")
}

// Archives is the folder of a tree that is no system but packages, for
// [Repository.AddSuite].
func (tree Tree) Archives() string { return tree.dir() }
