package apt

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/begun"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/hostfs"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// errKilled ends a command of a fake host that is killed.
var errKilled = errors.New("killed")

// fake is a host with apt and dpkg, kept in memory. What apt writes is lost in a power
// cut unless it was synced; what dpkg writes is not, since dpkg syncs.
type fake struct {
	t    *testing.T
	root string
	dpkg packages
	// journal is set while dpkg is interrupted.
	journal bool
	// remote is what the repository has by name, listed and archives what apt has here:
	// a version by name, and "name=version".
	remote, listed map[string]string
	archives       map[string]bool
	// then and listedThen are the same as of another time; local is set while a source has no past.
	then, listedThen map[string]string
	local            bool
	// snapshot names that time for apt.
	snapshot string
	// torn is set while the list on disk is not the one of its Release, which is as before.
	torn bool
	// synced are listed and archives as they are on disk.
	syncedListed   map[string]string
	syncedArchives map[string]bool
	// down is set while the repository does not answer.
	down bool
	// files are the versions of the files that packages have, by name. Those of a package
	// that is apart lie on another file system than dpkg's database: a power cut takes back
	// the names that they were given since they were synced.
	files, syncedFiles map[string]string
	apart              map[string]bool
	// damaged are the packages that were installed from an archive that is not what the
	// repository has.
	damaged []string
	// lies has apt end with 0 without a change.
	lies bool
	// kill counts the changes until all is killed; negative never.
	kill     int
	commands []string
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{t: t, root: t.TempDir(), dpkg: packages{}, kill: -1, remote: map[string]string{}, listed: map[string]string{}, archives: map[string]bool{}, files: map[string]string{}, apart: map[string]bool{}}
	for _, name := range []string{"a", "b", "c"} {
		f.files[name] = "1"
		f.dpkg[name] = installed{want: "install", status: "installed", version: "1"}
		f.remote[name] = "2"
	}
	f.write("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n")
	f.write("etc/os-release", "ID=debian\nVERSION_ID=12\nVERSION_CODENAME=bookworm\n")
	return f
}

func (f *fake) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		f.t.Fatal(err)
	}
}

// strategy returns a new strategy for the host, as the process of each action has one.
func (f *fake) strategy() *Strategy {
	f.t.Helper()
	s, err := New(Options{StateDir: filepath.Join(f.root, "state"), LockLimit: time.Second})
	if err != nil {
		f.t.Fatal(err)
	}
	s.host, s.run, s.sync = hostfs.Root(f.root), f.run, f.sync
	s.space = func(string) (hostfs.Filesystem, error) { return hostfs.Filesystem{ID: 1, Free: 1 << 40}, nil }
	s.locked = func() (string, error) { return "", nil }
	return s
}

func (f *fake) sync(context.Context, func(string)) error {
	f.syncedListed, f.syncedArchives, f.syncedFiles = maps.Clone(f.listed), maps.Clone(f.archives), maps.Clone(f.files)
	return nil
}

// archive is the file of an archive, by "name=version". Its content is that.
func (f *fake) archive(key string) string {
	return filepath.Join("var/cache/apt/archives", strings.Replace(key, "=", "_", 1)+"_amd64.deb")
}

// content returns the content of an archive; empty if it is not there.
func (f *fake) content(key string) string {
	data, err := os.ReadFile(filepath.Join(f.root, f.archive(key)))
	if err != nil {
		return ""
	}
	return string(data)
}

// powerCut loses what was not synced.
func (f *fake) powerCut() {
	f.listed, f.archives = maps.Clone(f.syncedListed), maps.Clone(f.syncedArchives)
	if f.listed == nil {
		f.listed, f.archives = map[string]string{}, map[string]bool{}
	}
	if err := os.RemoveAll(filepath.Join(f.root, "var/cache/apt/archives")); err != nil {
		f.t.Fatal(err)
	}
	for key := range f.archives {
		f.write(f.archive(key), key)
	}
	for name := range f.apart {
		f.files[name] = f.syncedFiles[name]
	}
	f.kill = -1
}

// fakeList is the list of packages, and empty the sum of a file that has nothing.
const (
	fakeList = "lists/x_._Packages"
	empty    = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// tear is a power cut after which the disk has the Release of a repository, and of the list that
// belongs to it only these bytes. apt reads the list as one without a package.
func (f *fake) tear(has string) {
	f.t.Helper()
	f.write("lists/x_._InRelease", "SHA256:\n "+strings.Repeat("5", 64)+" 631 Packages\n")
	f.write(fakeList, has)
	f.torn, f.listed = true, map[string]string{}
}

// interrupt begins or merges dpkg's journal.
func (f *fake) interrupt(on bool) {
	f.t.Helper()
	f.journal = on
	if on {
		f.write("var/lib/dpkg/updates/0001", "")
	} else if err := os.RemoveAll(filepath.Join(f.root, "var/lib/dpkg/updates")); err != nil {
		f.t.Fatal(err)
	}
}

// change is one thing that a kill may prevent.
func (f *fake) change(do func()) error {
	if f.kill == 0 {
		return errKilled
	}
	f.kill--
	do()
	return nil
}

func (f *fake) run(_ context.Context, c program.Command) (program.Ended, error) {
	var words, args []string
	options := map[string]bool{}
	for i := 0; i < len(c.Args); i++ {
		switch arg := c.Args[i]; {
		case arg == "-o" || arg == "-f" && c.Name == "dpkg-query" || arg == "--format":
			i++
			words = append(words, c.Args[i])
		case strings.HasPrefix(arg, "-"):
			options[arg] = true
		default:
			args = append(args, arg)
		}
	}
	f.commands = append(f.commands, c.Describe())
	for _, word := range words {
		if id, ok := strings.CutPrefix(word, "APT::Snapshot="); ok || strings.HasPrefix(word, "Dir::State::lists=") {
			f.remote, f.listed, f.then, f.listedThen, f.snapshot = f.then, f.listedThen, f.remote, f.listed, id
			defer func() {
				f.remote, f.listed, f.then, f.listedThen, f.snapshot = f.then, f.listedThen, f.remote, f.listed, ""
			}()
			break
		}
	}
	printed, err := "", error(nil)
	switch c.Name {
	case "dpkg":
		printed, err = f.runDpkg(options, args)
	case "dpkg-query":
		if slices.Contains(words, statusFormat) {
			for _, name := range slices.Sorted(maps.Keys(f.dpkg)) {
				have := f.dpkg[name]
				printed += fmt.Sprintf("%s\tamd64\t%s\t%s\t%s\t%s\t10\n", name, have.want, have.status, map[bool]string{true: "reinstreq", false: "ok"}[have.reinstall], have.version)
			}
		}
	case "apt-cache":
		printed = f.cache(args)
	case "apt-mark":
	case "apt-get":
		printed, err = f.get(args, options)
	}
	if refused, ok := errors.AsType[refusal](err); ok {
		return program.Ended{Exit: 100, Stdout: printed, Printed: printed + string(refused)}, nil
	}
	return program.Ended{Stdout: printed, Printed: printed}, err
}

// refusal is an error that apt prints.
type refusal string

func (r refusal) Error() string { return string(r) }

func (f *fake) runDpkg(options map[string]bool, args []string) (string, error) {
	switch {
	case options["--verify"]:
		printed := "??5?????? c /etc/changed-here\n"
		for _, name := range args {
			if f.files[name] != f.dpkg[name].version {
				printed += "??5??????   /opt/" + name + "\n"
			}
		}
		return printed, nil
	case options["--print-architecture"]:
		return "amd64\n", nil
	case options["--set-selections"]:
		f.interrupt(false)
	case options["--configure"]:
		f.interrupt(false)
		for _, name := range slices.Sorted(maps.Keys(f.dpkg)) {
			have := f.dpkg[name]
			if have.reinstall {
				return "", refusal("dpkg: error processing package " + name + " (--configure):\n package is in a very bad inconsistent state\n")
			}
			if have.status == "unpacked" {
				have.status = "installed"
				if err := f.change(func() { f.dpkg[name] = have }); err != nil {
					return "", err
				}
			}
		}
	}
	return "", nil
}

func (f *fake) cache(args []string) string {
	if args[0] == "show" {
		printed := ""
		for _, arg := range args[1:] {
			name, version, _ := strings.Cut(arg, "=")
			printed += fmt.Sprintf("Package: %s\nArchitecture: amd64\nVersion: %s\nSize: 1000\nSHA256: %x\n\n", name, version, sha256.Sum256([]byte(arg)))
		}
		return printed
	}
	if len(args) == 1 {
		local := map[bool]string{true: " 500 file:/srv ./ Packages\n     release c=\n"}[f.local]
		return "Package files:\n 100 /var/lib/dpkg/status\n     release a=now\n 500 http://x/" + f.snapshot + " ./ Packages\n     release c=\n" + local + "Pinned packages:\n"
	}
	printed := ""
	for _, name := range args[1:] {
		printed += fmt.Sprintf("%s:\n  Installed: %s\n  Candidate: %s\n  Version table:\n", name, f.dpkg[name].version, cmp.Or(f.listed[name], "(none)"))
		if f.listed[name] != "" {
			printed += fmt.Sprintf("     %s 500\n        500 http://x ./ Packages\n", f.listed[name])
		}
	}
	return printed
}

func (f *fake) get(args []string, options map[string]bool) (string, error) {
	verb := "install"
	if len(args) > 0 {
		verb = args[0]
	}
	switch {
	case verb == "update" && f.down:
		return "", refusal("E: Failed to fetch http://x  Could not connect to x\n")
	case verb == "update":
		if f.torn && hostfs.Root(f.root).Exists(fakeList) {
			return "Hit:1 http://x ./ InRelease\n", nil // apt takes the list that is here.
		}
		return "", f.change(func() { f.torn, f.listed = false, maps.Clone(f.remote) })
	case verb == "indextargets" && (f.torn || len(f.listed) > 0):
		if !f.torn {
			f.write("lists/x_._InRelease", "SHA256:\n "+empty+" 0 Packages\n")
			f.write(fakeList, "")
		}
		return "/" + fakeList + "\tPackages\n", nil
	case verb == "indextargets" || verb == "check":
		return "", nil
	}
	targets, err := f.targets(verb, args, options)
	if err != nil {
		return "", err
	}
	switch {
	case options["--simulate"]:
		return f.simulate(targets), nil
	case options["--print-uris"]:
		printed := ""
		for _, t := range targets {
			if f.content(t.argument()) == "" {
				printed += fmt.Sprintf("'http://x/%s' %s 1000 SHA256:0\n", t.name, t.name)
			}
		}
		return printed, nil
	}
	return "", f.install(targets, options)
}

// targets are what a command is to install.
func (f *fake) targets(verb string, args []string, options map[string]bool) ([]target, error) {
	var targets []target
	if verb != "install" {
		for _, name := range slices.Sorted(maps.Keys(f.dpkg)) {
			if version := f.listed[name]; version != "" && f.dpkg[name].version != version {
				targets = append(targets, target{name, version})
			}
		}
		return targets, nil
	}
	for _, arg := range args[1:] {
		name, version, _ := strings.Cut(arg, "=")
		archived := filepath.Ext(arg) == ".deb"
		if archived {
			name, version, _ = strings.Cut(strings.TrimSuffix(filepath.Base(arg), "_amd64.deb"), "_")
		}
		have := f.dpkg[name]
		if have.version == version && have.isInstalled() && !options["--reinstall"] {
			continue
		}
		if f.listed[name] != version && have.version != version && !archived {
			return nil, refusal(fmt.Sprintf("E: Version '%s' for '%s' was not found\n", version, name))
		}
		if have.version == version && have.status == "unpacked" && !options["--reinstall"] {
			continue
		}
		targets = append(targets, target{name, version})
	}
	return targets, nil
}

func (f *fake) simulate(targets []target) string {
	printed := ""
	for _, t := range targets {
		printed += fmt.Sprintf("Inst %s [%s] (%s Debian:12/stable [amd64])\n", t.name, f.dpkg[t.name].version, t.version)
	}
	return printed + fmt.Sprintf("%d upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n", len(targets))
}

func (f *fake) install(targets []target, options map[string]bool) error {
	if f.journal {
		return refusal("E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.\n")
	}
	for _, name := range slices.Sorted(maps.Keys(f.dpkg)) {
		if f.dpkg[name].reinstall && !options["--reinstall"] {
			return refusal("E: The package " + name + " needs to be reinstalled, but I can't find an archive for it.\n")
		}
	}
	for _, t := range targets {
		switch have := f.dpkg[t.name]; {
		case !options["--download-only"] && have.status == "unpacked" && have.version == t.version: // It fetches nothing for what is only to be configured.
			return refusal("E: Internal Error, No file name for " + t.name + ":amd64\n")
		case f.content(t.argument()) != "": // apt looks only at the size.
		case options["--no-download"]:
			return refusal("E: Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?\n")
		case f.down:
			return refusal("E: Failed to fetch http://x  Could not connect to x\n")
		default:
			if err := f.change(func() { f.archives[t.argument()] = true; f.write(f.archive(t.argument()), t.argument()) }); err != nil {
				return err
			}
		}
	}
	if options["--download-only"] || f.lies {
		return nil
	}
	for _, t := range targets {
		have := f.dpkg[t.name]
		f.interrupt(true)
		for _, next := range []installed{
			{want: "install", status: "half-installed", reinstall: true, version: have.version},
			{want: "install", status: "unpacked", version: t.version},
		} {
			if err := f.change(func() { f.dpkg[t.name] = next }); err != nil {
				return err
			}
		}
		f.files[t.name] = t.version
		if f.content(t.argument()) != t.argument() {
			f.damaged = append(f.damaged, t.name)
		}
	}
	f.interrupt(false)
	_, err := f.runDpkg(map[string]bool{"--configure": true}, nil)
	return err
}

func job(plan message.ChangeSet) strategy.Job {
	return strategy.Job{Run: 1, Plan: plan, Progress: func(int, string) {}}
}

// prepared is a host that was prepared, with its plan.
func prepared(t *testing.T) (*fake, message.ChangeSet) {
	t.Helper()
	f := newFake(t)
	plan, err := f.strategy().Prepare(t.Context(), job(message.ChangeSet{}))
	if err != nil || len(plan.Changes) != 3 {
		t.Fatalf("the plan is %v, %v", plan, err)
	}
	return f, plan
}

// TestPrepareEndsOnDisk loses the power after prepare, and the repository: the upgrade
// has all that it needs.
func TestPrepareEndsOnDisk(t *testing.T) {
	t.Parallel()
	f, plan := prepared(t)
	f.powerCut()
	f.down = true
	outcome, err := f.strategy().Upgrade(t.Context(), job(plan))
	if err != nil || outcome != strategy.Done {
		t.Errorf("the upgrade ends with %d, %v", outcome, err)
	}
	if left := f.dpkg.missing(plan.Changes); len(left) > 0 {
		t.Errorf("missing: %v", left)
	}
}

// TestDoneIsNoExitStatus has apt end with 0 without a change.
func TestDoneIsNoExitStatus(t *testing.T) {
	t.Parallel()
	f, plan := prepared(t)
	f.lies = true
	outcome, err := f.strategy().Upgrade(t.Context(), job(plan))
	if err == nil || strategy.ClassOf(err) != message.Install || !strings.Contains(err.Error(), "3 changes are missing of the plan: a 1 → 2, b 1 → 2, c 1 → 2") {
		t.Errorf("the upgrade ends with %d, %v", outcome, err)
	}
}

// TestNewKernelNeedsNoMarker upgrades the kernel of a host where nobody writes
// /run/reboot-required.
func TestNewKernelNeedsNoMarker(t *testing.T) {
	t.Parallel()
	f, plan := prepared(t)
	for _, version := range []string{"6.1.0-18-amd64", "6.1.0-30-amd64"} {
		f.write("boot/vmlinuz-"+version, "")
		f.write("usr/lib/modules/"+version+"/modules.dep", "")
	}
	outcome, err := f.strategy().Upgrade(t.Context(), job(plan))
	if err != nil || outcome != strategy.RebootRequired {
		t.Errorf("the upgrade ends with %d, %v; want that it requires a reboot", outcome, err)
	}
	f.write("proc/sys/kernel/osrelease", "6.1.0-30-amd64\n")
	if outcome, err = f.strategy().Resume(t.Context(), job(plan)); err != nil || outcome != strategy.Done {
		t.Errorf("after the reboot it ends with %d, %v", outcome, err)
	}
}

// TestKilledAnywhere kills an upgrade at each change that it makes, with and without a
// power cut, and the repair of it, too. Each time Resume ends with the plan carried
// out, or says that nothing was done and Upgrade does it.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	for first := range 12 {
		for second := range 8 {
			f, plan := prepared(t)
			f.apart = map[string]bool{"b": true}
			f.kill = first
			_, err := f.strategy().Upgrade(t.Context(), job(plan))
			survived := err == nil
			f.powerCut()
			f.kill = second
			outcome, err := f.strategy().Resume(t.Context(), job(plan))
			for try := 0; err != nil && try < 3; try++ {
				f.powerCut()
				outcome, err = f.strategy().Resume(t.Context(), job(plan))
			}
			f.kill = -1
			if err == nil && outcome == strategy.NotDone {
				outcome, err = f.strategy().Upgrade(t.Context(), job(plan))
			}
			if left := f.dpkg.missing(plan.Changes); err != nil || outcome != strategy.Done || len(left) > 0 || f.journal {
				t.Fatalf("killed at %d (survived: %t) and %d it ends with %d, %v, missing %v:\n%s", first, survived, second, outcome, err, left, strings.Join(f.commands, "\n"))
			}
			f.powerCut()
			f.wantFiles("2")
		}
	}
}

// TestRollbackLeavesWhatOthersInstalled has somebody install a version that is not planned,
// and remove a package, between prepare and upgrade. The rollback undoes what the upgrade has
// changed, and nothing else.
func TestRollbackLeavesWhatOthersInstalled(t *testing.T) {
	t.Parallel()
	f, plan := prepared(t)
	for _, name := range []string{"a", "b", "c"} {
		f.write(f.archive(name+"=1"), name+"=1")
	}
	f.dpkg["a"] = installed{want: "install", status: "installed", version: "3"}
	f.dpkg["b"] = installed{want: "install", status: "installed", version: "2"}
	f.dpkg["c"] = installed{want: "deinstall", status: "config-files", version: "1"}
	outcome, err := f.strategy().Rollback(t.Context(), job(plan))
	if err != nil || outcome != strategy.Done {
		t.Fatalf("the rollback ends with %d, %v", outcome, err)
	}
	if f.dpkg["a"].version != "3" || f.dpkg["b"].version != "1" || !f.dpkg["c"].isGone() {
		t.Errorf("after the rollback the host has %+v", f.dpkg)
	}
	if outcome, err = f.strategy().Rollback(t.Context(), job(plan)); err != nil || outcome != strategy.Done {
		t.Errorf("once more it ends with %d, %v", outcome, err)
	}
}

// TestRollbackRemovesNothingOfOthers checks what apt would do in a rollback against what the
// upgrade has changed.
func TestRollbackRemovesNothingOfOthers(t *testing.T) {
	t.Parallel()
	undo := strategy.Undo{
		Back: []message.Change{{Name: "a", From: "2", To: "1"}, {Name: "new", From: "2"}},
		Left: []message.Change{{Name: "b", From: "3", To: "2"}},
	}
	for name, c := range map[string]struct {
		would message.Change
		want  string
	}{
		"what it undoes":         {message.Change{Name: "a", From: "2", To: "1"}, ""},
		"what it has installed":  {message.Change{Name: "new", From: "2"}, ""},
		"a dependency":           {message.Change{Name: "lib", From: "2", To: "1"}, ""},
		"what others changed":    {message.Change{Name: "b", From: "3", To: "1"}, "b 3 → 1"},
		"removes what others do": {message.Change{Name: "c", From: "1"}, "c 1 (removed)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if more := undoesOthers(undo, simulation{changes: []simulated{{Change: c.would}}}); strings.Join(more, "; ") != c.want {
				t.Errorf("it says %q", more)
			}
		})
	}
}

// TestDoneIsOnDisk loses the power right after done: files on another file system than
// dpkg's database stay new.
func TestDoneIsOnDisk(t *testing.T) {
	t.Parallel()
	f, plan := prepared(t)
	f.apart = map[string]bool{"a": true, "b": true, "c": true}
	if outcome, err := f.strategy().Upgrade(t.Context(), job(plan)); err != nil || outcome != strategy.Done {
		t.Fatalf("the upgrade ends with %d, %v", outcome, err)
	}
	f.powerCut()
	f.wantFiles("2")
}

func (f *fake) wantFiles(version string) {
	f.t.Helper()
	for name, has := range f.files {
		if has != version {
			f.t.Errorf("the files of %s are those of %s, and dpkg has recorded %s", name, has, f.dpkg[name].version)
		}
	}
}

// TestDamagedArchives damages archives that were fetched, without a change of their size:
// before the host is prepared again, and before the upgrade. None is installed.
func TestDamagedArchives(t *testing.T) {
	t.Parallel()
	damage := func(f *fake) { f.write(f.archive("a=2"), "a=\x00") }
	for name, do := range map[string]func(f *fake, plan *message.ChangeSet) error{
		"before the upgrade": func(f *fake, _ *message.ChangeSet) error { damage(f); return nil },
		"before the host is prepared again": func(f *fake, plan *message.ChangeSet) (err error) {
			damage(f)
			*plan, err = f.strategy().Prepare(f.t.Context(), job(message.ChangeSet{}))
			if got := f.content("a=2"); got != "a=2" {
				f.t.Errorf("the host is prepared with the archive %q", got)
			}
			return err
		},
		"before a repair": func(f *fake, plan *message.ChangeSet) error {
			f.kill = 2
			_, err := f.strategy().Upgrade(f.t.Context(), job(*plan))
			f.kill = -1
			damage(f)
			if !errors.Is(err, errKilled) {
				return err
			}
			_, err = f.strategy().Resume(f.t.Context(), job(*plan))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, plan := prepared(t)
			if err := do(f, &plan); err != nil {
				t.Fatal(err)
			}
			outcome, err := f.strategy().Upgrade(t.Context(), job(plan))
			if err != nil || outcome != strategy.Done || len(f.dpkg.missing(plan.Changes)) > 0 {
				t.Errorf("the upgrade ends with %d, %v", outcome, err)
			}
			if len(f.damaged) > 0 {
				t.Errorf("damaged archives are installed: %v", f.damaged)
			}
		})
	}
	f, plan := prepared(t)
	damage(f)
	f.down = true
	if _, err := f.strategy().Upgrade(t.Context(), job(plan)); strategy.ClassOf(err) != message.Transient || len(f.damaged) > 0 || !f.dpkg.untouched(plan.Changes) {
		t.Errorf("without its repository it ends with %v of class %q, and %+v", err, strategy.ClassOf(err), f.dpkg)
	}
}

// TestDpkgOfOthersIsNotTakenForKilled has somebody start dpkg after the locks were looked at: what it
// is at is not taken for what a dpkg that was killed has left, whether it runs on or has just ended.
func TestDpkgOfOthersIsNotTakenForKilled(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]int{"it runs on": 2, "it has just ended": 0} {
		for action, do := range map[string]func(s *Strategy, plan message.ChangeSet) error{
			"prepare": func(s *Strategy, _ message.ChangeSet) error {
				_, err := s.Prepare(t.Context(), job(message.ChangeSet{}))
				return err
			},
			"upgrade": func(s *Strategy, plan message.ChangeSet) error {
				_, err := s.Upgrade(t.Context(), job(plan))
				return err
			},
		} {
			t.Run(action+", "+name, func(t *testing.T) {
				t.Parallel()
				f, plan := prepared(t)
				s, looks := f.strategy(), 0
				s.LockLimit = time.Minute
				s.locked = func() (string, error) {
					switch looks++; {
					case looks == 1:
						f.interrupt(true) // It begins right after this look.
					case looks-2 < held:
						return "process 104 (dpkg) holds /var/lib/dpkg/lock", nil
					case f.journal:
						f.interrupt(false)
					}
					return "", nil
				}
				if err := do(s, plan); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestPrepareRepairsOwnRuns kills an upgrade that nobody resumes. The next run undoes it or, where
// the versions of before are gone, completes it, and repairs nothing that others left.
func TestPrepareRepairsOwnRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		archives, others bool
		changes          int
	}{
		"the way back":      {archives: true, changes: 3},
		"no way back":       {changes: 0},
		"broken by another": {archives: true, others: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, plan := prepared(t)
			f.kill = 3
			if _, err := f.strategy().Upgrade(t.Context(), job(plan)); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			f.kill = -1
			for _, name := range []string{"a", "b", "c"} {
				if c.archives {
					f.write(f.archive(name+"=1"), name+"=1")
				}
			}
			if c.others {
				f.dpkg["z"] = installed{want: "install", status: "half-configured", version: "1"}
			}
			next, err := f.strategy().Prepare(t.Context(), job(message.ChangeSet{}))
			if c.others {
				if err == nil || !strings.Contains(err.Error(), "z, interrupted before this run") {
					t.Errorf("prepare ends with %v", err)
				}
				return
			}
			if unfinished, reinstall := f.dpkg.broken(); err != nil || len(next.Changes) != c.changes || len(unfinished)+len(reinstall) > 0 || f.journal {
				t.Errorf("prepare ends with %v, %v, and leaves %+v", next.Changes, err, f.dpkg)
			}
		})
	}
}

// TestPrepareDowngradesNoHost has an upgrade end where nobody resumes it, and a person bring the
// host into service. What prepare then finds broken is no reason to go back with all of it.
func TestPrepareDowngradesNoHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		breaks func(f *fake)
		want   map[string]string
	}{
		"nothing is broken": {func(*fake) {}, map[string]string{"a": "2", "b": "2", "c": "2"}},
		"a dpkg was ended":  {func(f *fake) { f.interrupt(true) }, map[string]string{"a": "2", "b": "2", "c": "2"}},
		"one is broken": {func(f *fake) {
			f.dpkg["b"] = installed{want: "install", status: "half-installed", reinstall: true, version: "2"}
		}, map[string]string{"a": "2", "b": "1", "c": "2"}},
		"one is broken, another is newer, and there is no way back": {func(f *fake) {
			f.dpkg["b"] = installed{want: "install", status: "half-installed", reinstall: true, version: "2"}
			f.dpkg["c"] = installed{want: "install", status: "installed", version: "3"}
			if err := os.RemoveAll(filepath.Join(f.root, f.archive("b=1"))); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"a": "2", "b": "2", "c": "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, plan := prepared(t)
			f.kill = 3
			if _, err := f.strategy().Upgrade(t.Context(), job(plan)); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			f.kill = -1
			f.interrupt(false)
			for _, name := range []string{"a", "b", "c"} {
				f.dpkg[name], f.files[name] = installed{want: "install", status: "installed", version: "2"}, "2"
				f.write(f.archive(name+"=1"), name+"=1")
			}
			c.breaks(f)
			_, err := f.strategy().Prepare(t.Context(), job(message.ChangeSet{}))
			if unfinished, reinstall := f.dpkg.broken(); err != nil || len(unfinished)+len(reinstall) > 0 || f.journal {
				t.Errorf("prepare ends with %v, and leaves %+v", err, f.dpkg)
			}
			for name, want := range c.want {
				if got := f.dpkg[name].version; got != want {
					t.Errorf("%s is %s, not %s", name, got, want)
				}
			}
			if _, err := f.strategy().Prepare(t.Context(), job(message.ChangeSet{})); err != nil || begun.Read(filepath.Join(f.root, "state")) != nil {
				t.Errorf("the next prepare ends with %v, and what was begun is not forgotten", err)
			}
		})
	}
}

// TestListsAreNewerThanThePlan has somebody fetch newer lists between prepare and upgrade, so
// that apt would install another version. From the archives of prepare the planned one is
// installed; without them the upgrade is refused.
func TestListsAreNewerThanThePlan(t *testing.T) {
	t.Parallel()
	f, plan := prepared(t)
	plan.Changes = plan.Changes[:2]
	f.listed["a"], f.archives["a=3"] = "3", true
	if outcome, err := f.strategy().Upgrade(t.Context(), job(plan)); err != nil || outcome != strategy.Done || f.dpkg["a"].version != "2" || f.dpkg["b"].version != "2" || len(f.damaged) > 0 {
		t.Errorf("the upgrade ends with %d, %v, and the host has %+v", outcome, err, f.dpkg)
	}
	f, plan = prepared(t)
	f.listed["a"], f.archives["a=3"] = "3", true
	if err := os.Remove(filepath.Join(f.root, f.archive("a=2"))); err != nil {
		t.Fatal(err)
	}
	if _, err := f.strategy().Upgrade(t.Context(), job(plan)); err == nil || !strings.Contains(err.Error(), "Version '2' for 'a' was not found") {
		t.Errorf("without its archive the upgrade ends with %v", err)
	}
	if !f.dpkg.untouched(plan.Changes) {
		t.Errorf("the host has %+v", f.dpkg)
	}
}

// TestPlanNeedsLists plans on a host that has lost its lists: that is no empty plan. A plan that
// fetches them first changes nothing else.
func TestPlanNeedsLists(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	if plan, err := f.strategy().Plan(t.Context(), job(message.ChangeSet{})); strategy.ClassOf(err) != message.Repository {
		t.Errorf("the plan is %v, %v", plan, err)
	}
	fetching := job(message.ChangeSet{})
	fetching.Fetch = true
	if plan, err := f.strategy().Plan(t.Context(), fetching); err != nil || len(plan.Changes) == 0 || f.dpkg["a"].version != "1" {
		t.Errorf("a plan that fetches is %v, %v, on a host with %+v", plan, err, f.dpkg)
	}
	f.down = true
	if _, err := f.strategy().Plan(t.Context(), fetching); strategy.ClassOf(err) != message.Transient {
		t.Errorf("a plan that cannot fetch ends with %v", err)
	}
	if _, err := f.strategy().Prepare(t.Context(), job(message.ChangeSet{})); strategy.ClassOf(err) != message.Transient {
		t.Errorf("prepare ends with %v", err)
	}
}

// TestTornListIsNoPlan cuts the power when the Release of a repository is on disk and its list is not,
// or only half of it. Such a host is not up to date: a plan by the lists that are here is refused, and
// one that fetches them has all changes.
func TestTornListIsNoPlan(t *testing.T) {
	t.Parallel()
	for name, has := range map[string]string{"empty": "", "half": "Package: a\nVersion: 2\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.tear(has)
			if plan, err := f.strategy().Plan(t.Context(), job(message.ChangeSet{})); err == nil || !strings.Contains(err.Error(), "lists/x_._Packages is not what its Release says") || !strings.Contains(err.Error(), string(remedy.PrepareAgain)) {
				t.Errorf("the plan by what is here is %v, %v", plan, err)
			}
			fetching := job(message.ChangeSet{})
			fetching.Fetch = true
			if plan, err := f.strategy().Plan(t.Context(), fetching); err != nil || len(plan.Changes) != 3 {
				t.Errorf("a plan that fetches is %v, %v", plan, err)
			}
			f.tear(has)
			if plan, err := f.strategy().Prepare(t.Context(), job(message.ChangeSet{})); err != nil || len(plan.Changes) != 3 {
				t.Errorf("prepared is %v, %v", plan, err)
			}
			f.write("lists/x_._InRelease", "SHA256:\n "+empty+" 0 other/Packages\n")
			if plan, err := f.strategy().Plan(t.Context(), job(message.ChangeSet{})); err != nil || len(plan.Changes) != 3 {
				t.Errorf("of a list of which the Release has no sum the plan is %v, %v", plan, err)
			}
			f.tear(has)
			f.write("lists/x_._InRelease", "SHA256:\n "+empty+" 0 other/Packages\n")
			if plan, err := f.strategy().Prepare(t.Context(), job(message.ChangeSet{})); has == "" && (err != nil || len(plan.Changes) != 3) {
				t.Errorf("prepared by an empty list of which the Release has no sum: %v, %v", plan, err)
			}
			f.write(fakeList, "")
			if _, err := f.strategy().Plan(t.Context(), job(message.ChangeSet{})); err != nil {
				t.Errorf("an empty list of which the Release has no sum is %v", err)
			}
		})
	}
}

// TestRepairIsHonest resumes a host whose archives and repository are gone: it is no
// success, and says what a person does.
func TestRepairIsHonest(t *testing.T) {
	t.Parallel()
	f, plan := prepared(t)
	f.kill = 3
	if _, err := f.strategy().Upgrade(t.Context(), job(plan)); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	f.syncedListed, f.syncedArchives = nil, nil
	f.powerCut()
	f.down = true
	_, err := f.strategy().Resume(t.Context(), job(plan))
	if err == nil || !strings.Contains(err.Error(), "run: dpkg --configure -a; apt-get update; apt-get -f install; apt-get --reinstall install b; the last repair") || strategy.ClassOf(err) != message.Transient {
		t.Errorf("resume ends with %v of class %q", err, strategy.ClassOf(err))
	}
	f.down = false
	delete(f.remote, "b")
	if _, err := f.strategy().Resume(t.Context(), job(plan)); err == nil || !strings.Contains(err.Error(), string(remedy.AptGone.With("b"))) || strings.Contains(err.Error(), "prepare the host again") {
		t.Errorf("without b in the repository it ends with %v", err)
	}
	f.remote["b"] = "2"
	if outcome, err := f.strategy().Resume(t.Context(), job(plan)); err != nil || outcome != strategy.Done {
		t.Errorf("when the repository is back it ends with %d, %v", outcome, err)
	}
}
