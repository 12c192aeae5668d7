package dnf_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// system is a Debian with one generation of dnf, whose command is dnf as it is in the
// Fedora family.
type system struct {
	name string
	tree realhost.Tree
	// cache is where metadata and downloads are kept, lock what a transaction holds.
	cache, lock string
}

// each runs a test with each generation of dnf that this machine has a tree for.
func each(t *testing.T, test func(t *testing.T, s system)) {
	t.Helper()
	for _, s := range []system{
		{"dnf4", realhost.Images, "/var/cache/dnf", "(dnf) holds /var/lib/dnf/rpmdb_lock.pid"},
		{"dnf5", realhost.DNF5, "/var/cache/libdnf5", "(dnf) holds /run/dnf/rpmtransaction.lock"},
	} {
		t.Run(s.name, func(t *testing.T) {
			realhost.Need(t, realhost.Hosts, s.tree)
			t.Parallel()
			test(t, s)
		})
	}
}

// machine is a container with the real dnf and rpm, and a repository of the test. Its
// packages are beside those of Debian, and need nothing of them.
type machine struct {
	t *testing.T
	realhost.Machine
	// container is what the machine is, or was made of.
	container *realhost.Container
	// served is the folder of the repository, and address where that is.
	served, address string
	down            atomic.Bool
	// lies has the repository send other bytes of packages, as many as it should.
	lies atomic.Bool
	// options are those of the strategy, as the worker hands them on.
	options  map[string]any
	plan     message.ChangeSet
	rejected message.Rejected
	// release is that of the run; nil if it has none.
	release *release.Release
	// boot is the id of the boot that actions are told.
	boot string
}

// liar sends zeros.
type liar struct{ http.ResponseWriter }

func (l liar) Write(data []byte) (int, error) { return l.ResponseWriter.Write(make([]byte, len(data))) }

// pack is an rpm of one file.
type pack struct {
	name, version string
	// fields are added to the spec, post is its script.
	fields, post string
	// files are more files, of which each has the version.
	files []string
}

// newMachine installs packages of the repository.
func newMachine(t *testing.T, s system, packs ...pack) *machine {
	t.Helper()
	c := realhost.NewContainer(t, realhost.ContainerOptions{Tree: s.tree})
	m := &machine{t: t, Machine: c, container: c, served: t.TempDir(), options: map[string]any{}, boot: "b"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		if strings.HasSuffix(r.URL.Path, ".rpm") && m.lies.Load() {
			w = liar{w}
		}
		http.FileServer(http.Dir(m.served)).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	program, err := os.ReadFile(realhost.Program(t, "0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	m.WriteFile("/usr/local/bin/osupgrade-agent", string(program))
	m.address = strings.TrimPrefix(server.URL, "http://")
	m.follow()
	// Debian keeps the database of rpm in the home of root.
	m.WriteFile("/etc/rpm/macros", "%_dbpath /var/lib/rpm\n")
	m.Start()
	m.Must("chmod 755 /usr/local/bin/osupgrade-agent")
	// The plugin of Debian's dnf5 that keeps each package in a repository is in no other.
	m.Must("test -e /usr/bin/dnf || ln -s dnf5 /usr/bin/dnf; rm -f /etc/dnf/libdnf5-plugins/local.conf")
	m.publish(append(packs, pack{name: "shell", version: "1.0", fields: "Provides: /bin/sh"})...)
	names := make([]string, 0, len(packs))
	for _, p := range packs {
		names = append(names, p.name)
	}
	m.Must("dnf -q -y --refresh install " + strings.Join(names, " "))
	return m
}

// follow has dnf use the repository.
func (m *machine) follow() {
	m.t.Helper()
	m.WriteFile("/etc/yum.repos.d/appliance.repo", "[appliance]\nname=appliance\ngpgcheck=0\nbaseurl=http://"+m.Reach(m.address)+"\n")
}

// publish adds packages to the repository.
func (m *machine) publish(packs ...pack) {
	m.t.Helper()
	for _, p := range packs {
		post := ""
		if p.post != "" {
			post = "%post -p /bin/sh\n" + p.post + "\n"
		}
		install, list := "", ""
		for _, file := range p.files {
			install += fmt.Sprintf("mkdir -p %%{buildroot}%s && echo %s %s >%%{buildroot}%s\n", filepath.Dir(file), p.version, filepath.Base(file), file)
			list += file + "\n"
		}
		m.WriteFile("/srv/"+p.name+".spec", fmt.Sprintf(`Name: %[1]s
Version: %[2]s
Release: 1
Summary: %[1]s
License: none
BuildArch: noarch
AutoReqProv: no
%[3]s
%%description
%[1]s
%%install
mkdir -p %%{buildroot}/usr/share/%[1]s-%[2]s
echo %[2]s >%%{buildroot}/usr/share/%[1]s-%[2]s/version
head -c 100000 /dev/urandom >%%{buildroot}/usr/share/%[1]s-%[2]s/data
%[5]s%[4]s%%files
/usr/share/%[1]s-%[2]s
%[6]s`, p.name, p.version, p.fields, post, install, list))
		m.Must("rpmbuild -bb --quiet --define '_topdir /srv/top' --define '_rpmdir /srv/repo' /srv/" + p.name + ".spec 2>&1")
	}
	m.Must("createrepo_c -q /srv/repo; test ! -e /srv/updateinfo.xml || modifyrepo_c /srv/updateinfo.xml /srv/repo/repodata 2>&1")
	if err := os.RemoveAll(filepath.Join(m.served, "repodata")); err != nil {
		m.t.Fatal(err)
	}
	from := os.DirFS(m.container.Inside("/srv/repo"))
	// Packages that are there already stay: CopyFS does not write over them.
	if err := os.RemoveAll(m.served); err != nil {
		m.t.Fatal(err)
	}
	if err := os.CopyFS(m.served, from); err != nil {
		m.t.Fatal(err)
	}
}

// sign signs a package with a key that nobody knows.
func (m *machine) sign(nvra string) {
	m.t.Helper()
	m.Must(`export GNUPGHOME=/root/signer; mkdir -p -m 700 $GNUPGHOME; gpg -q --batch --passphrase '' --quick-gen-key signer@appliance.test rsa2048 sign 2>&1
rpmsign --define '__gpg /usr/bin/gpg' --define '_gpg_name signer@appliance.test' --addsign /srv/repo/noarch/` + nvra + `.rpm 2>&1`)
	m.publish()
}

// request is the command that asks the program for an action.
func (m *machine) request(action string) string {
	m.t.Helper()
	options := map[string]any{"Mode": "all", "LockLimit": "5s", "Versions": []string{"appliance*"}}
	maps.Copy(options, m.options)
	request := map[string]any{
		"format": 1, "action": action, "tenant": "acme", "host": "h01", "run": 7, "boot-id": m.boot, "plan": m.plan, "rejected": m.rejected,
		"options": map[string]any{"state": "/var/lib/osupgrade-worker", "dnf": options},
	}
	if m.release != nil {
		request["release"] = m.release.Pin("r1")
	}
	text, err := json.Marshal(request)
	if err != nil {
		m.t.Fatal(err)
	}
	m.WriteFile("/var/request."+action, string(text))
	return fmt.Sprintf("/usr/local/bin/osupgrade-agent strategy dnf %s </var/request.%s", action, action)
}

// answer is what an action came to.
type answer struct {
	status      int
	class, text string
	plan        message.ChangeSet
}

// act has the program carry out an action.
func (m *machine) act(action string) answer {
	m.t.Helper()
	text, err := m.Run(m.t.Context(), m.request(action))
	got := answer{text: text}
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		got.status = ended.ExitCode()
	} else if ended, ok := errors.AsType[realhost.Status](err); ok {
		got.status = int(ended)
	} else if err != nil {
		m.t.Fatalf("%s: %v\n%s", action, err, text)
	}
	for line := range strings.Lines(text) {
		var told struct {
			Class string             `json:"class"`
			Plan  *message.ChangeSet `json:"plan"`
		}
		if json.Unmarshal([]byte(line), &told) != nil {
			continue
		}
		got.class = told.Class
		if told.Plan != nil {
			got.plan = *told.Plan
		}
	}
	return got
}

// must is act, and the action has to succeed.
func (m *machine) must(action string) answer {
	m.t.Helper()
	got := m.act(action)
	if got.status != 0 {
		m.t.Fatalf("%s ends with %d:\n%s", action, got.status, got.text)
	}
	return got
}

// asks is act, and the action has to succeed and ask for a reboot.
func (m *machine) asks(action string) answer {
	m.t.Helper()
	got := m.act(action)
	if got.status != 10 {
		m.t.Fatalf("%s ends with %d and asks for no reboot:\n%s", action, got.status, got.text)
	}
	return got
}

// fails is act, and the action has to fail with a class and a reason.
func (m *machine) fails(action string, class message.Class, reason string) {
	m.t.Helper()
	if got := m.act(action); got.status == 0 || got.class != string(class) || !strings.Contains(got.text, reason) {
		m.t.Errorf("%s ends with %d and class %q, want class %q and %q:\n%s", action, got.status, got.class, class, reason, got.text)
	}
}

// left has an action fail with a class and a remedy, and returns what was printed.
func (m *machine) left(action string, class message.Class, r remedy.Remedy) string {
	m.t.Helper()
	got := m.act(action)
	if got.status == 0 || got.class != string(class) {
		m.t.Fatalf("%s ends with %d of class %q, want %q:\n%s", action, got.status, got.class, class, got.text)
	}
	realhost.Remedy(m.t, r, got.text)
	return got.text
}

// healed has the next run upgrade the host.
func (m *machine) healed() {
	m.t.Helper()
	m.prepare()
	m.must("upgrade")
	m.done()
}

// prepare is the action prepare; later actions have its plan.
func (m *machine) prepare() message.ChangeSet {
	m.t.Helper()
	m.plan = m.must("prepare").plan
	return m.plan
}

// has checks which packages of the test are installed.
func (m *machine) has(want ...string) {
	m.t.Helper()
	if got := strings.Fields(m.Must("rpm -qa 'appliance*' | sort")); !slices.Equal(got, want) {
		m.t.Errorf("installed are %q, want %q", got, want)
	}
}

// done checks what the worker asks before it answers done.
func (m *machine) done() {
	m.t.Helper()
	if got := m.must("missing"); strings.TrimSpace(got.text) != "{}" {
		m.t.Errorf("missing is %s", got.text)
	}
	m.must("verify")
}

func wantPlan(t *testing.T, plan message.ChangeSet, want ...string) {
	t.Helper()
	var got []string
	for _, c := range plan.Changes {
		got = append(got, c.String())
	}
	for _, h := range plan.Held {
		got = append(got, fmt.Sprintf("%s stays %s, not %s: %s", h.Name, h.Version, h.Offered, h.Reason))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the plan is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRealUpgrade is the whole way of one host: prepare, upgrade without a repository,
// the way back, and a plan that holds back what was rolled back.
func TestRealUpgrade(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		m := newMachine(t, s, pack{name: "appliance", version: "1.0"}, pack{name: "appliance-lib", version: "1.0"}, pack{name: "appliance-old", version: "1.0"},
			pack{name: "appliance-excluded", version: "1.0"}, pack{name: "appliance-unmet", version: "1.0"})
		m.Must("echo excludepkgs=appliance-excluded >>/etc/yum.repos.d/appliance.repo")
		m.publish(pack{name: "appliance", version: "2.0", fields: "Requires: appliance-lib >= 2, appliance-new"}, pack{name: "appliance-lib", version: "2.0", fields: "Epoch: 1\nProvides: appliance-lib = 2.0"},
			pack{name: "appliance-new", version: "2.0"}, pack{name: "appliance-renamed", version: "2.0", fields: "Obsoletes: appliance-old < 2"},
			pack{name: "appliance-excluded", version: "2.0"}, pack{name: "appliance-unmet", version: "2.0", fields: "Requires: not-there"})
		want := []string{
			"appliance-lib.noarch 1.0-1 → 1:2.0-1", "appliance-new.noarch 2.0-1 (new)", "appliance-old.noarch 1.0-1 (removed)", "appliance-renamed.noarch 2.0-1 (new)", "appliance.noarch 1.0-1 → 2.0-1",
			"appliance-excluded.noarch stays 1.0-1, not 2.0-1: excluded by excludepkgs in the configuration of dnf", "appliance-unmet.noarch stays 1.0-1, not 2.0-1: its dependencies are not met now",
		}
		plan := m.prepare()
		wantPlan(t, plan, want...)
		if plan.Download == 0 {
			t.Error("the plan does not say what is to be fetched")
		}
		before := []string{"appliance-1.0-1.noarch", "appliance-excluded-1.0-1.noarch", "appliance-lib-1.0-1.noarch", "appliance-old-1.0-1.noarch", "appliance-unmet-1.0-1.noarch"}
		m.has(before...)
		// The repository moves on, and is gone then: what is installed is what was planned.
		m.publish(pack{name: "appliance", version: "3.0"})
		m.down.Store(true)
		m.must("upgrade")
		m.has("appliance-2.0-1.noarch", "appliance-excluded-1.0-1.noarch", "appliance-lib-2.0-1.noarch", "appliance-new-2.0-1.noarch", "appliance-renamed-2.0-1.noarch", "appliance-unmet-1.0-1.noarch")
		m.done()
		if got := m.Must("dnf -q -C repoquery --userinstalled --qf '%{name}' 2>/dev/null || dnf -q -C history userinstalled"); !strings.Contains(got, "appliance-lib") || strings.Contains(got, "appliance-new") {
			t.Errorf("installed by a user are\n%s", got)
		}
		m.must("resume")
		m.down.Store(false)
		m.must("rollback")
		m.has(before...)
		m.must("rollback")
		m.rejected = message.Rejected{"appliance.noarch": {"3.0-1"}}
		if got := m.prepare(); !slices.ContainsFunc(got.Held, func(h message.HeldPackage) bool {
			return h.Name == "appliance.noarch" && h.Reason == "it was rolled back on this host"
		}) &&
			!slices.ContainsFunc(got.Changes, func(c message.Change) bool { return c.Name == "appliance.noarch" && c.To == "2.0-1" }) {
			t.Errorf("the plan takes a version again that was rolled back: %+v", got)
		}
		if got := m.must("versions"); !strings.Contains(got.text, `"appliance":"1.0-1"`) {
			t.Errorf("versions are %s", got.text)
		}
	})
}

// TestRealPackages upgrades named packages and nothing else.
func TestRealPackages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		m := newMachine(t, s, pack{name: "appliance-1", version: "1.0"}, pack{name: "appliance-2", version: "1.0"}, pack{name: "appliance-3", version: "1.0"})
		m.publish(pack{name: "appliance-1", version: "2.0"}, pack{name: "appliance-1", version: "3.0"}, pack{name: "appliance-2", version: "2.0"}, pack{name: "appliance-3", version: "2.0"})
		m.options = map[string]any{"Mode": "packages", "Packages": []string{"appliance-1=2.0", "appliance-2*"}}
		wantPlan(t, m.prepare(), "appliance-1.noarch 1.0-1 → 2.0-1", "appliance-2.noarch 1.0-1 → 2.0-1")
		m.must("upgrade")
		m.done()
		m.has("appliance-1-2.0-1.noarch", "appliance-2-2.0-1.noarch", "appliance-3-1.0-1.noarch")
		wantPlan(t, m.prepare(), "appliance-1.noarch stays 2.0-1, not 3.0-1: dnf-packages names another version")
		m.options = map[string]any{"Mode": "packages", "Packages": []string{"appliance-1=1.0"}}
		wantPlan(t, m.prepare(), "appliance-1.noarch 2.0-1 → 1.0-1")
		m.must("upgrade")
		m.done()
		m.options = map[string]any{"Mode": "packages", "Packages": []string{"not-there"}}
		m.fails("prepare", message.Install, "not-there is not installed")
		m.options = map[string]any{"Mode": "security"}
		wantPlan(t, m.prepare(), "appliance-1.noarch stays 1.0-1, not 3.0-1: not a security update", "appliance-3.noarch stays 1.0-1, not 2.0-1: not a security update")
	})
}

// TestRealKernel upgrades what is installed beside its older versions: the oldest goes, the
// others stay, and the way back brings it again. It takes a reboot.
func TestRealKernel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		const provides = "Provides: installonlypkg(kernel)"
		m := newMachine(t, s, pack{name: "kernel-core", version: "1.0", fields: provides})
		for _, version := range []string{"2.0", "3.0"} {
			m.publish(pack{name: "kernel-core", version: version, fields: provides})
			m.Must("dnf -q -y --refresh upgrade")
		}
		installed := func(want string) {
			t.Helper()
			if got := strings.Join(strings.Fields(m.Must("rpm -q --qf '%{VERSION} ' kernel-core | xargs -n1 | sort")), " "); got != want {
				t.Errorf("installed are the kernels %s, want %s", got, want)
			}
		}
		installed("1.0 2.0 3.0")
		m.publish(pack{name: "kernel-core", version: "4.0", fields: provides})
		plan := m.prepare()
		wantPlan(t, plan, "kernel-core.noarch 1.0-1 → 4.0-1")
		if plan.Reboot != "kernel-core is a kernel" {
			t.Errorf("the plan takes a reboot because of %q", plan.Reboot)
		}
		m.asks("upgrade")
		installed("2.0 3.0 4.0")
		before := m.BootID()
		m.Must("systemctl reboot")
		realhost.Until(t, "another boot", time.Minute, func() bool { return m.BootID() != before })
		m.done()
		m.act("rollback")
		installed("1.0 2.0 3.0")
	})
}

// TestRealReboot: dnf5 brings needs-restarting along, which asks for a reboot until there
// was one.
func TestRealReboot(t *testing.T) {
	realhost.Need(t, realhost.Hosts, realhost.DNF5)
	t.Parallel()
	m := newMachine(t, system{tree: realhost.DNF5}, pack{name: "linux-firmware", version: "1.0"}, pack{name: "appliance", version: "1.0"})
	before := m.BootID()
	m.Must("systemctl reboot") // What was installed counts as changed since the start.
	realhost.Until(t, "another boot", time.Minute, func() bool { return m.BootID() != before })
	m.publish(pack{name: "linux-firmware", version: "2.0"}, pack{name: "appliance", version: "2.0"})
	m.prepare()
	if got := m.asks("upgrade"); !strings.Contains(got.text, "linux-firmware has changed since the start") {
		t.Errorf("the reason is not told:\n%s", got.text)
	}
	if got := m.asks("resume"); !strings.Contains(got.text, "a reboot is required") {
		t.Errorf("no reboot is asked for before it was:\n%s", got.text)
	}
	before = m.BootID()
	m.Must("systemctl reboot")
	realhost.Until(t, "another boot", time.Minute, func() bool { return m.BootID() != before })
	m.must("resume")
	m.done()
}

// TestRealVersionlock: dnf5 has its locks without a plugin.
func TestRealVersionlock(t *testing.T) {
	realhost.Need(t, realhost.Hosts, realhost.DNF5)
	t.Parallel()
	m := newMachine(t, system{tree: realhost.DNF5}, pack{name: "appliance-1", version: "1.0"}, pack{name: "appliance-2", version: "1.0"}, pack{name: "appliance-3", version: "1.0"})
	m.publish(pack{name: "appliance-1", version: "2.0"}, pack{name: "appliance-2", version: "2.0"}, pack{name: "appliance-3", version: "2.0"})
	m.Must("dnf -q versionlock add appliance-1; dnf -q --refresh versionlock exclude appliance-2-2.0-1")
	const locked = ": locked to its version by dnf versionlock"
	wantPlan(t, m.prepare(), "appliance-3.noarch 1.0-1 → 2.0-1", "appliance-1.noarch stays 1.0-1, not 2.0-1"+locked, "appliance-2.noarch stays 1.0-1, not 2.0-1"+locked)
	m.options = map[string]any{"Mode": "packages", "Packages": []string{"appliance-*"}}
	wantPlan(t, m.prepare(), "appliance-3.noarch 1.0-1 → 2.0-1", "appliance-1.noarch stays 1.0-1, not 2.0-1"+locked, "appliance-2.noarch stays 1.0-1, not 2.0-1"+locked)
	m.must("upgrade")
	m.done()
	m.has("appliance-1-1.0-1.noarch", "appliance-2-1.0-1.noarch", "appliance-3-2.0-1.noarch")
}

// advisory are the advisories of a repository with one: a security update of a package.
func advisory(name, version string) string {
	return fmt.Sprintf(`<?xml version="1.0"?>
<updates><update from="appliance" status="final" type="security" version="1"><id>APPLIANCE-1</id><title>one</title><severity>Important</severity>
<issued date="2026-11-01 00:00:00"/><updated date="2026-11-01 00:00:00"/><description>one</description><pkglist><collection short="a"><name>a</name>
<package name="%[1]s" version="%[2]s" release="1" epoch="0" arch="noarch" src="a"><filename>%[1]s-%[2]s-1.noarch.rpm</filename></package>
</collection></pkglist></update></updates>
`, name, version)
}

// TestRealSecurity upgrades what an advisory names, and what that needs.
func TestRealSecurity(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		m := newMachine(t, s, pack{name: "appliance", version: "1.0"}, pack{name: "appliance-lib", version: "1.0"}, pack{name: "appliance-other", version: "1.0"})
		m.WriteFile("/srv/updateinfo.xml", advisory("appliance", "2.0"))
		m.publish(pack{name: "appliance", version: "2.0", fields: "Requires: appliance-lib >= 2"}, pack{name: "appliance-lib", version: "2.0"}, pack{name: "appliance-other", version: "2.0"})
		m.options = map[string]any{"Mode": "security"}
		wantPlan(t, m.prepare(), "appliance-lib.noarch 1.0-1 → 2.0-1", "appliance.noarch 1.0-1 → 2.0-1", "appliance-other.noarch stays 1.0-1, not 2.0-1: not a security update")
		m.down.Store(true)
		m.must("upgrade")
		m.done()
		m.has("appliance-2.0-1.noarch", "appliance-lib-2.0-1.noarch", "appliance-other-1.0-1.noarch")
	})
}

// TestRealFaults breaks what an upgrade needs, and checks class and reason.
func TestRealFaults(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		m := newMachine(t, s, pack{name: "appliance", version: "1.0"})
		m.publish(pack{name: "appliance", version: "2.0"})
		m.down.Store(true)
		if said := m.left("prepare", message.Transient, remedy.Network); !strings.Contains(said, "appliance") {
			t.Errorf("it names no repository:\n%s", said)
		}
		m.down.Store(false)
		m.Must("sed -i s/gpgcheck=0/gpgcheck=1/ /etc/yum.repos.d/appliance.repo")
		m.fails("prepare", message.Artifact, "appliance")
		m.WriteFile("/etc/pki/other.asc", string(realhost.NewRepository(t).Key()))
		m.Must("echo gpgkey=file:///etc/pki/other.asc >>/etc/yum.repos.d/appliance.repo")
		m.fails("prepare", message.Artifact, "check the key of the repository")
		m.sign("appliance-2.0-1.noarch")
		m.left("prepare", message.Artifact, remedy.DNFKey)
		m.Must("sed -i s/gpgcheck=1/gpgcheck=0/ /etc/yum.repos.d/appliance.repo")
		// Another dnf is in a transaction.
		m.publish(pack{name: "slow", version: "1.0", post: "sleep 15"})
		m.Must("(setsid dnf -y --refresh install slow >/dev/null 2>&1) >/dev/null 2>&1 </dev/null &")
		realhost.Until(t, "the other dnf", time.Minute, func() bool { return m.Must("pgrep -x sleep || true") != "" })
		if got := m.act("plan"); got.status != 11 {
			t.Errorf("a host that somebody else changes has a plan: status %d\n%s", got.status, got.text)
		}
		if said := m.left("prepare", message.Lock, remedy.WaitOrRaise); !strings.Contains(said, s.lock) {
			t.Errorf("it does not say %q:\n%s", s.lock, said)
		}
		m.options = map[string]any{"LockLimit": "1m"}
		m.prepare() // It waits for the end of the other one.
		m.Must("rpm -q slow")
		m.options = map[string]any{}
		m.Must("find " + s.cache + " -name '*.rpm' -delete; mount -t tmpfs -o size=50k small " + s.cache)
		m.left("prepare", message.Space, remedy.Room)
		m.Must("umount " + s.cache)
		m.has("appliance-1.0-1.noarch")
		m.prepare()
		// The archives are lost, and so is the repository: nothing is changed.
		m.Must("find " + s.cache + " -name '*.rpm' -delete")
		m.down.Store(true)
		m.fails("upgrade", message.Transient, "check the network and the repository")
		m.down.Store(false)
		m.has("appliance-1.0-1.noarch")
		// The host was changed in between: what the plan does not name is not changed.
		m.prepare()
		m.publish(pack{name: "appliance-user", version: "1.0", fields: "Requires: appliance = 1.0"})
		m.Must("dnf -q -y --refresh install appliance-user")
		m.left("upgrade", message.Install, remedy.DNFDependency)
		m.has("appliance-1.0-1.noarch", "appliance-user-1.0-1.noarch")
		m.publish(pack{name: "appliance-user", version: "2.0", fields: "Requires: appliance = 2.0"})
		m.Must("dnf -q --refresh makecache")
		m.left("upgrade", message.Install, remedy.DNFChanged)
		m.has("appliance-1.0-1.noarch", "appliance-user-1.0-1.noarch")
		m.healed()
		m.has("appliance-2.0-1.noarch", "appliance-user-2.0-1.noarch")
	})
}
