package apt

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/osinfo"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/hostfs"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestArchiveOf checks which archive apt has kept of a version, also of a package that a host has of two
// architectures: the way back from an upgrade of both needs each.
func TestArchiveOf(t *testing.T) {
	t.Parallel()
	root := hostfs.Root(t.TempDir())
	kept := func(path string, lines ...string) {
		if err := os.MkdirAll(filepath.Dir(root.Path(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root.Path(path), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, archive := range []string{"libc6_2.36-9_amd64.deb", "libc6_2.36-9_i386.deb", "libx32_1_i386.deb", "adduser_1%3a3_all.deb"} {
		kept(filepath.Join(archivesFolder, archive), "!<arch>")
	}
	kept(filepath.Join(archivesFolder, "adduser_2_all.deb"))
	kept("/var/lib/dpkg/arch", "amd64", "i386", "")
	s := &Strategy{host: root}
	for of, want := range map[message.Change]string{
		{Name: "libc6", To: "2.36-9"}:      "libc6_2.36-9_amd64.deb",
		{Name: "libc6:i386", To: "2.36-9"}: "libc6_2.36-9_i386.deb",
		{Name: "libx32:i386", To: "1"}:     "libx32_1_i386.deb",
		{Name: "libx32", To: "1"}:          "",
		{Name: "adduser", To: "1:3"}:       "adduser_1%3a3_all.deb",
		{Name: "adduser", To: "2"}:         "",
	} {
		if want != "" {
			want = root.Path(filepath.Join(archivesFolder, want))
		}
		if got := s.archiveOf(of); got != want {
			t.Errorf("%s %s is at %q, not %q", of.Name, of.To, got, want)
		}
	}
}

func TestParseStatus(t *testing.T) {
	t.Parallel()
	printed := "adduser\tall\tinstall\tinstalled\tok\t3.134\t686\n" +
		"libc6\tamd64\tinstall\tinstalled\tok\t2.36\t100\n" +
		"libc6\ti386\tinstall\tunpacked\tok\t2.36\t100\n" +
		"held\tall\thold\tinstalled\tok\t1.0\t\n" +
		"cut\tall\tinstall\thalf-installed\treinstreq\t1.0\t\n" +
		"old\tall\tdeinstall\tconfig-files\tok\t1.0\t\n" +
		"never\t\tunknown\tnot-installed\tok\t\t\n"
	all, err := parseStatus(printed, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	if all["libc6"].version != "2.36" || all["libc6:i386"].status != "unpacked" || all["adduser"].size != 686<<10 || !all["held"].isInstalled() {
		t.Errorf("got %+v", all)
	}
	unfinished, reinstall := all.broken()
	if !slices.Equal(unfinished, []string{"libc6:i386"}) || !slices.Equal(reinstall, []string{"cut"}) {
		t.Errorf("unfinished %v, to be unpacked again %v", unfinished, reinstall)
	}
	for name, damaged := range map[string]string{"nothing": "", "a field too few": "a\tall\tinstall\tinstalled\tok\t1.0\n", "no name": "\tall\tinstall\tinstalled\tok\t1.0\t\n"} {
		if got, err := parseStatus(damaged, "amd64"); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	now := packages{
		"done":      {status: "installed", version: "2"},
		"old":       {status: "installed", version: "1"},
		"unpacked":  {status: "unpacked", version: "2"},
		"triggered": {status: "triggers-pending", version: "2"},
		"broken":    {status: "half-configured", version: "2"},
		"cut":       {status: "installed", reinstall: true, version: "2"},
		"kept":      {status: "installed", version: "1"},
		"removed":   {status: "config-files", version: "1"},
		"held":      {want: "hold", status: "installed", version: "2"},
	}
	var plan []message.Change
	for _, name := range []string{"done", "old", "unpacked", "triggered", "broken", "cut", "absent", "held"} {
		plan = append(plan, message.Change{Name: name, From: "1", To: "2"})
	}
	plan = append(plan, message.Change{Name: "kept", From: "1"}, message.Change{Name: "removed", From: "1"}, message.Change{Name: "gone", From: "1"})
	var names []string
	for _, c := range now.missing(plan) {
		names = append(names, c.Name)
	}
	if want := []string{"old", "unpacked", "triggered", "broken", "cut", "absent", "kept"}; !slices.Equal(names, want) {
		t.Errorf("missing are %v, want %v", names, want)
	}
}

// dpkgModel is a host as nextRepair sees it, with what each command does to it: what
// was found on real hosts whose dpkg was killed.
type dpkgModel struct {
	interrupted, cut, unconfigured, missing bool
	// lost are the archives, listless the lists: a power cut takes them.
	lost, listless bool
	// broken is a package whose script always fails.
	broken bool
}

func (m *dpkgModel) condition() condition {
	found := condition{interrupted: m.interrupted, missing: m.missing}
	if m.cut {
		found.reinstall = []string{"a"}
	}
	if m.unconfigured {
		found.unfinished = []string{"b"}
	}
	return found
}

func (m *dpkgModel) run(what repair) bool {
	if what != repairConfigure && what != repairUpdate && m.interrupted {
		return false // "dpkg was interrupted"
	}
	switch what {
	case repairConfigure:
		m.interrupted = false
		if m.cut || m.broken {
			return false
		}
		m.unconfigured = false
	case repairUpdate:
		m.listless, m.lost = false, false
	case repairReinstall:
		if m.lost || m.listless {
			return false
		}
		m.cut = false
	case repairInstall:
		if m.listless || m.lost || m.cut || m.unconfigured {
			return false
		}
		m.missing = false
	case repairFix:
		if m.cut || m.broken {
			return false
		}
		m.unconfigured = false
	}
	return true
}

// TestNextRepairRepairsEveryHost plays each host that a kill or a power cut can leave:
// nextRepair ends, and all that can be repaired is.
func TestNextRepairRepairsEveryHost(t *testing.T) {
	t.Parallel()
	for bits := range 1 << 7 {
		bit := func(i int) bool { return bits&(1<<i) != 0 }
		host := dpkgModel{interrupted: bit(0), cut: bit(1), unconfigured: bit(2), missing: bit(3) || bit(1), lost: bit(4), listless: bit(5), broken: bit(6) && bit(2)}
		before := host
		var tried []attempt
		for {
			next, ok := nextRepair(host.condition(), tried)
			if !ok {
				break
			}
			if len(tried) > 20 {
				t.Fatalf("%+v: it never ends: %v", before, tried)
			}
			tried = append(tried, attempt{next, host.run(next)})
		}
		if whole := !host.interrupted && !host.cut && !host.unconfigured && !host.missing; whole == before.broken {
			t.Errorf("%+v became %+v by %v", before, host, tried)
		}
	}
}

func TestAgain(t *testing.T) {
	t.Parallel()
	now := packages{
		"cut": {status: "half-installed", reinstall: true, version: "1"}, "other": {status: "half-installed", reinstall: true, version: "3"},
		"done": {status: "installed", version: "2"}, "unpacked": {status: "unpacked", version: "2"}, "waits": {status: "installed", version: "1"},
	}
	plan := []message.Change{{Name: "cut", From: "1", To: "2"}, {Name: "done", From: "1", To: "2"}, {Name: "gone", From: "1"}, {Name: "unpacked", From: "1", To: "2"}, {Name: "waits", From: "1", To: "2"}}
	if got := again([]string{"cut", "other"}, plan, now); !slices.Equal(got, []string{"cut=2", "waits=2", "other=3"}) {
		t.Errorf("got %v", got)
	}
}

func TestNextRepairOrder(t *testing.T) {
	t.Parallel()
	configured, reinstalled := attempt{repairConfigure, true}, attempt{repairReinstall, true}
	for name, row := range map[string]struct {
		now   condition
		tried []attempt
		want  repair
	}{
		"a host that is whole":                     {condition{}, nil, ""},
		"dpkg was interrupted":                     {condition{interrupted: true, reinstall: []string{"a"}, missing: true}, nil, repairConfigure},
		"cut while it was unpacked":                {condition{reinstall: []string{"a"}, missing: true}, []attempt{{repairConfigure, false}}, repairReinstall},
		"and its archive is lost":                  {condition{reinstall: []string{"a"}, missing: true}, []attempt{{repairConfigure, false}, {repairReinstall, false}}, repairUpdate},
		"and the lists are there again":            {condition{reinstall: []string{"a"}}, []attempt{{repairReinstall, false}, {repairUpdate, true}}, repairReinstall},
		"unpacked and not configured":              {condition{unfinished: []string{"b"}, missing: true}, []attempt{reinstalled}, repairConfigure},
		"a script that fails does not hold others": {condition{unfinished: []string{"b"}, missing: true}, []attempt{{repairConfigure, false}}, repairInstall},
		"configured and not all installed":         {condition{missing: true}, []attempt{configured}, repairInstall},
		"the plan alone does not help":             {condition{missing: true}, []attempt{configured, {repairInstall, false}, {repairUpdate, true}, {repairInstall, false}}, repairFix},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, _ := nextRepair(row.now, row.tried); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestParsePolicy(t *testing.T) {
	t.Parallel()
	_, printed := recorded(t, "policy-pkgs")
	all, err := parsePolicy(printed)
	if err != nil || len(all) != 2 {
		t.Fatalf("got %v, %v", all, err)
	}
	if offer := all["appliance"]; offer.installed != "1.0" || offer.candidate != "2.0" || offer.newest() != "2.0" || !offer.has("1.0") || offer.has("3.0") || len(offer.versions[1].sources) != 2 {
		t.Errorf("got %+v", offer)
	}
	phased, err := parsePolicy("tool:\n  Installed: 1\n  Candidate: 1\n  Package pin: 1\n  Version table:\n     2 500 (phased 10%)\n        500 http://x stable/main amd64 Packages\n *** 1 100\n        100 /var/lib/dpkg/status\n")
	if err != nil || phased["tool"].newest() != "2" || phased["tool"].has("1") {
		t.Errorf("got %+v, %v", phased, err)
	}
	for _, damaged := range []string{"no name\n", "  Installed: 1\n", "a:\n     2 x\n", "a:\n        500 http://x\n", "a:\n  Other: 1\n"} {
		if got, err := parsePolicy(damaged); err == nil {
			t.Errorf("%q is %v", damaged, got)
		}
	}
}

func FuzzParsePolicy(f *testing.F) {
	_, printed := recorded(f, "policy-pkgs")
	f.Add(printed)
	f.Add("a:\n  Installed: (none)\n  Candidate: 2\n  Version table:\n     2 -1\n")
	f.Fuzz(func(t *testing.T, printed string) {
		all, err := parsePolicy(printed)
		if err != nil {
			return
		}
		for name, offer := range all {
			if name == "" || strings.ContainsAny(name, " \t\n") || offer.installed == "(none)" {
				t.Fatalf("%q: %+v", name, offer)
			}
		}
	})
}

func TestSecurityVersion(t *testing.T) {
	t.Parallel()
	const indexes = `Package files:
 100 /var/lib/dpkg/status
     release a=now
 500 http://repository.example/debian-security bookworm-security/main amd64 Packages
     release v=12,o=Debian,a=stable-security,n=bookworm-security,l=Debian-Security,c=main,b=amd64
     origin repository.example
 -10 http://repository.example/ubuntu jammy-security/main amd64 Packages
     release v=22.04,o=Ubuntu,a=jammy-security,n=jammy,l=Ubuntu,c=main,b=amd64
     origin repository.example
 500 http://repository.example/debian bookworm/main amd64 Packages
     release v=12.15,o=Debian,a=stable,n=bookworm,l=Debian,c=main,b=amd64
     origin repository.example
Pinned packages:
     nginx -> 1.22 with priority 1001
`
	known := parseSources(indexes)
	if !slices.Equal(known.pinned, []string{"nginx"}) || len(known.security) != 4 {
		t.Fatalf("got %+v", known)
	}
	const security, ubuntu, plain = "http://repository.example/debian-security bookworm-security/main amd64 Packages", "http://repository.example/ubuntu jammy-security/main amd64 Packages", "http://repository.example/debian bookworm/main amd64 Packages"
	for name, row := range map[string]struct {
		offer available
		want  string
	}{
		"the newest is of security":               {available{installed: "1", versions: []offer{{"3", []string{security, plain}}, {"2", []string{plain}}}}, "3"},
		"of Ubuntu":                               {available{installed: "1", versions: []offer{{"3", []string{ubuntu}}}}, "3"},
		"a newer one is not":                      {available{installed: "1", versions: []offer{{"3", []string{plain}}, {"2", []string{security}}}}, "2"},
		"only an older one is":                    {available{installed: "2", versions: []offer{{"3", []string{plain}}, {"1", []string{security}}}}, ""},
		"the installed one is":                    {available{installed: "2", versions: []offer{{"2", []string{security}}}}, ""},
		"none is":                                 {available{installed: "1", versions: []offer{{"3", []string{plain}}}}, ""},
		"an unknown index":                        {available{installed: "1", versions: []offer{{"3", []string{"http://other"}}}}, ""},
		"a version that sorts as text before one": {available{installed: "9", versions: []offer{{"10", []string{security}}}}, "10"},
	} {
		if got := row.offer.securityVersion(known); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

func TestFromSecurity(t *testing.T) {
	t.Parallel()
	for releases, want := range map[string]bool{
		"Debian-Security:12/stable-security":                      true,
		"Debian:12.11/stable, Debian-Security:12/stable-security": true,
		"Ubuntu:22.04/jammy-updates, Ubuntu:22.04/jammy-security": true,
		"UbuntuESM:22.04/jammy-infra-security":                    true,
		"Appliance-Security:stable":                               true,
		"Debian:12.11/stable":                                     false,
		"Ubuntu:22.04/jammy-updates":                              false,
		"":                                                        false,
		"Debian Backports:/bookworm-backports, Debian-Security-Lookalike:x/stable": false,
	} {
		if got := fromSecurity(releases); got != want {
			t.Errorf("%q is %t", releases, got)
		}
	}
}

// TestChoose holds that choose keeps back exactly the bad ones, and asks apt once when
// there are none.
func TestChoose(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var targets []target
		bad := map[string]bool{}
		for i := range rng.IntN(40) {
			name := fmt.Sprintf("p%02d", i)
			targets = append(targets, target{name, "2"})
			if rng.IntN(8) == 0 {
				bad[name] = true
			}
		}
		tries := 0
		chosen, refused, err := choose(targets, func(some []target) (error, error) {
			tries++
			for _, s := range some {
				if bad[s.name] {
					return errors.New("no " + s.name), nil
				}
			}
			return nil, nil
		})
		if err != nil || len(chosen)+len(refused) != len(targets) || len(refused) != len(bad) {
			t.Fatalf("%d chosen, %d refused of %d with %d bad, %v", len(chosen), len(refused), len(targets), len(bad), err)
		}
		for _, c := range chosen {
			if bad[c.name] {
				t.Fatalf("%s was chosen", c.name)
			}
		}
		for name, why := range refused {
			if why != "no "+name {
				t.Fatalf("%s is refused because of %q", name, why)
			}
		}
		if limit := 1 + 2*6*len(bad); tries > limit || len(bad) == 0 && len(targets) > 0 && tries != 1 {
			t.Fatalf("%d tries for %d bad of %d", tries, len(bad), len(targets))
		}
	}
	broken := errors.New("apt is gone")
	if _, _, err := choose([]target{{"a", "1"}, {"b", "1"}}, func([]target) (error, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestBeyond(t *testing.T) {
	t.Parallel()
	planned := []message.Change{{Name: "a", From: "1", To: "2"}, {Name: "b", To: "1"}, {Name: "c", From: "1"}}
	would := func(changes ...message.Change) simulation {
		var s simulation
		for _, c := range changes {
			s.changes = append(s.changes, simulated{Change: c})
		}
		return s
	}
	for name, row := range map[string]struct {
		would simulation
		want  string
	}{
		"all of it":            {would(planned...), ""},
		"a part of it":         {would(planned[1]), ""},
		"from another version": {would(message.Change{Name: "a", From: "1.5", To: "2"}), ""},
		"a newer version":      {would(message.Change{Name: "a", From: "1", To: "3"}), "a 1 → 3"},
		"one more":             {would(planned[0], message.Change{Name: "d", To: "1"}), "d 1 (new)"},
		"one more removed":     {would(message.Change{Name: "b", From: "1"}), "b 1 (removed)"},
	} {
		err := beyond(planned, row.would)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
	}
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	changes := []message.Change{
		{Name: "a", From: "1", To: "2"}, {Name: "gone", From: "1"}, {Name: "linux-image-6.1.0-31-amd64", To: "6.1.1"}, {Name: "linux-image-amd64", From: "6.1.0", To: "6.1.1"},
	}
	archives := map[string]archive{"a=2": {unpacked: 30 * mib}, "linux-image-6.1.0-31-amd64=6.1.1": {unpacked: 400 * mib}}
	now := packages{"a": {size: 10 * mib}, "gone": {size: 5 * mib}}
	list := needs(changes, 80*mib, archives, now)
	want := []hostfs.Need{
		{Folder: archivesFolder, Bytes: 80 * mib}, {Folder: "/usr", Bytes: (20-5+400)*mib + 400*mib + spare}, {Folder: "/boot", Bytes: bootRoom},
	}
	if !slices.Equal(list, want) {
		t.Errorf("got %v, want %v", list, want)
	}
	if got := needs(nil, 0, nil, now); got != nil {
		t.Errorf("nothing needs %v", got)
	}
	one := func(free int64) func(string) (hostfs.Filesystem, error) {
		return func(string) (hostfs.Filesystem, error) { return hostfs.Filesystem{ID: 1, Free: free}, nil }
	}
	if err := hostfs.Shortage(list, one(2000*mib)); err != nil {
		t.Error(err)
	}
	err := hostfs.Shortage(list, one(500*mib))
	if strategy.ClassOf(err) != message.Space || !strings.Contains(err.Error(), "/var/cache/apt/archives and /usr and /boot, and 500 MiB are free") {
		t.Errorf("got %v", err)
	}
	// Each file system for itself.
	err = hostfs.Shortage(list, func(folder string) (hostfs.Filesystem, error) {
		if folder == "/boot" {
			return hostfs.Filesystem{ID: 2, Free: 10 * mib}, nil
		}
		return hostfs.Filesystem{ID: 1, Free: 5000 * mib}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "needs 64 MiB in /boot, and 10 MiB are free") {
		t.Errorf("got %v", err)
	}
}

func TestParseRecords(t *testing.T) {
	t.Parallel()
	_, printed := recorded(t, "show")
	all := parseRecords(printed, "amd64")
	if got := all["appliance=2.0"]; got.size != 10534658 || got.unpacked != 10534658 || len(all) != 2 {
		t.Errorf("got %+v", all)
	}
	_, printed = recorded(t, "print-uris")
	bytes := int64(0)
	for _, one := range parseURIs(printed) {
		bytes += one.size
	}
	if bytes != 10534658 {
		t.Errorf("%d bytes", bytes)
	}
}

func TestRebootSigns(t *testing.T) {
	t.Parallel()
	newer := osinfo.Kernels{Running: "6.1.0-18-amd64", Installed: []string{"6.1.0-18-amd64", "6.1.0-30-amd64"}}
	for name, row := range map[string]struct {
		signs rebootSigns
		want  string
	}{
		"nothing":                             {rebootSigns{}, ""},
		"the marker":                          {rebootSigns{marked: true}, "/run/reboot-required exists"},
		"the marker with names":               {rebootSigns{marked: true, packages: []string{"libc6", "systemd"}}, "libc6, systemd asked for it"},
		"a newer kernel without the marker":   {rebootSigns{kernels: newer}, "kernel 6.1.0-18-amd64 runs and 6.1.0-30-amd64 is installed"},
		"a newer kernel in a container":       {rebootSigns{kernels: newer, container: true}, ""},
		"the marker in a container":           {rebootSigns{marked: true, container: true}, "/run/reboot-required exists"},
		"the same kernel built anew":          {rebootSigns{kernels: osinfo.Kernels{Running: "6.1.0-18-amd64"}, built: "6.1.76-1", installed: "6.1.90-1"}, "kernel 6.1.0-18-amd64 of 6.1.76-1 runs and 6.1.90-1 is installed"},
		"the package of the kernel is gone":   {rebootSigns{built: "6.1.76-1"}, ""},
		"the same build":                      {rebootSigns{built: "6.1.76-1", installed: "6.1.76-1"}, ""},
		"a kernel of nobody's package (self)": {rebootSigns{kernels: osinfo.Kernels{Running: "6.12.1-self"}}, ""},
	} {
		if got := row.signs.reason(); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
	if found := builtFrom().FindStringSubmatch("#1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1 (2024-11-22)\n"); found == nil || found[1] != "6.1.119-1" {
		t.Errorf("got %v", found)
	}
}

func TestIsKernel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"linux-image-6.1.0-31-amd64": true, "linux-image-unsigned-6.8.0-31-generic": true, "linux-image-amd64": false,
		"linux-image-6.1.0-31-amd64-dbg": false, "linux-image-": false, "linux-headers-6.1.0-31-amd64": false,
	} {
		if isKernel(name) != want {
			t.Errorf("%s is %t", name, !want)
		}
	}
}

func TestConffileNotes(t *testing.T) {
	t.Parallel()
	files := parseConffiles("\n /etc/appliance.conf 0123456789abcdef\n /etc/gone.conf 0123 obsolete\n\n /etc/appliance.conf 0123\n")
	if !slices.Equal(files, []string{"/etc/appliance.conf", "/etc/gone.conf"}) {
		t.Fatalf("got %v", files)
	}
	notes := conffileNotes(files, func(name string) bool {
		return name == "/etc/appliance.conf.dpkg-dist" || name == "/etc/gone.conf.dpkg-old"
	})
	want := []string{
		"/etc/appliance.conf was kept as it was; the new one is beside it (/etc/appliance.conf.dpkg-dist)",
		"/etc/gone.conf was replaced; the old one is beside it (/etc/gone.conf.dpkg-old)",
	}
	if !slices.Equal(notes, want) {
		t.Errorf("got %q", notes)
	}
}

func TestAutomatic(t *testing.T) {
	t.Parallel()
	changes := []message.Change{{Name: "lib", From: "1", To: "2"}, {Name: "mine", From: "1", To: "2"}, {Name: "new", To: "1"}, {Name: "wanted", To: "1"}, {Name: "gone", From: "1"}}
	if got := automatic(changes, []string{"lib", "gone"}, []string{"wanted=1"}, false); !slices.Equal(got, []string{"lib"}) {
		t.Errorf("on the way back automatic is %v", got)
	}
	if got := automatic(changes, []string{"lib", "gone"}, []string{"wanted=1"}, true); !slices.Equal(got, []string{"lib", "new"}) {
		t.Errorf("got %v", got)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"nothing is wrong":         {func(*Options) {}, ""},
		"an unknown policy":        {func(o *Options) { o.Conffiles = "ask" }, `apt-conffiles: "ask" is invalid`},
		"a version of a published": {func(o *Options) { o.Versions = []string{"nginx=1"} }, "apt-versions: \"nginx=1\" names a version"},
		"no state":                 {func(o *Options) { o.StateDir = "" }, "state folder"},
		"a negative limit":         {func(o *Options) { o.LockLimit = -1 }, "apt-lock-limit: -1ns is invalid"},
		"snapshots by day":         {func(o *Options) { o.Snapshot = "https://mirror.example/{year}/{month}/{day}/{host}/{path}" }, ""},
		"a snapshot without date":  {func(o *Options) { o.Snapshot = "https://mirror.example/{path}" }, "apt-snapshot: \"https://mirror.example/{path}\" has no date"},
		"snapshots of a suite":     {func(o *Options) { o.Snapshot = "https://mirror.example/{date}/{suite}" }, "has {suite}; use {date}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{StateDir: t.TempDir()}
			row.change(&o)
			_, err := New(o)
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// TestParseVerify checks which files of dpkg --verify count: neither configuration files nor
// what dpkg does not unpack on this host.
func TestParseVerify(t *testing.T) {
	t.Parallel()
	const printed = "??5?????? c /etc/a.conf\n??5??????   /opt/a b\nmissing     /usr/share/doc/a/NEWS.gz\nmissing   c /etc/b.conf\nmissing     /usr/lib/a\n??5??????   /usr/share/doc/b\n"
	got := parseVerify(printed, []string{"/usr/share/doc/*", "["})
	if want := []string{"/opt/a b", "/usr/lib/a", "/usr/share/doc/b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	f := newFake(t)
	f.write("etc/dpkg/dpkg.cfg", "# path-exclude=/no\nno-debsig\n")
	f.write("etc/dpkg/dpkg.cfg.d/docker", "path-exclude /not-this\npath-exclude=/usr/share/man/*\npath-include=/usr/share/man/a\n")
	if got, err := f.strategy().excluded(); err != nil || !slices.Equal(got, []string{"/usr/share/man/*"}) {
		t.Errorf("excluded are %q, %v", got, err)
	}
}
