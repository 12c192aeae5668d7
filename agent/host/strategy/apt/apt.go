// Package apt upgrades hosts of Debian and of what is derived from it (Ubuntu): it
// runs apt-get and dpkg. Prepare fetches lists and archives and makes the plan;
// Upgrade installs exactly the versions of the plan, from the archives alone; Resume
// repairs what an interrupted dpkg left and compares the host with the plan.
//
// What decides is pure: the reading of apt's output (simulate.go, policy.go,
// status.go), the plan (plan.go), the class of a failure (classify.go), the order of
// repairs (repair.go), the room that is needed (space.go) and the sources of a release
// upgrade (sources.go). The package never believes an exit status where it can look:
// done means that each package of the plan is installed in its version. Nor does it
// believe what a disk may have lost: archives are compared with their sums (sums.go), and
// after an interruption files with those of the recorded version (content.go).
package apt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/osinfo"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/hostfs"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Options configure a Strategy.
type Options struct {
	// Snapshot is where the repositories are as they were at a time; empty if apt itself has to
	// know.
	Snapshot strategy.SnapshotURL
	// Conffiles says what becomes of configuration files that were changed on the host
	// and by the package: "keep", "replace" or "default" (dpkg's own configuration).
	Conffiles string
	// Removals is "allow" if packages may be removed, or "refuse".
	Removals string
	// Phased is "exclude" or "include": whether updates that the distribution offers
	// to a part of all machines are installed.
	Phased string
	// ThirdParty is "disable" or "keep": what becomes of the sources of others in an upgrade of
	// the distribution.
	ThirdParty string
	// Versions are patterns of the packages whose versions are published.
	Versions []string
	// LockLimit is how long to wait for a lock of dpkg or apt.
	LockLimit time.Duration
	// StateDir is for what the strategy keeps: which packages were installed
	// automatically, and the sources of another time or distribution.
	StateDir string
	// Output gets what apt and dpkg print; nil discards it.
	Output io.Writer
}

// Defaults are the values of options that are not given.
func Defaults() Options {
	return Options{
		Conffiles: "keep", Removals: "refuse", Phased: "exclude", ThirdParty: "disable", LockLimit: 10 * time.Minute,
		Versions: []string{"linux-image-*", "apt", "dpkg", "systemd", "libc6", "openssl", "osupgrade-agent"},
	}
}

// synced are folders whose file systems are synced in any case, of whatever kind they are,
// besides all file systems on disks: apt syncs neither its lists nor its archives, dpkg
// neither all that its scripts write nor the names of files on other file systems than that
// of its database. Without it a power cut leaves lists and archives empty, and old files
// of a package that is recorded as new.
var synced = []string{"/var/lib/apt/lists", archivesFolder, "/var/lib/dpkg", "/etc", "/usr", "/boot"}

// Strategy upgrades this host by apt.
type Strategy struct {
	Options
	host   hostfs.Root
	run    program.Runner
	sync   func(ctx context.Context, tell func(string)) error
	space  func(folder string) (hostfs.Filesystem, error)
	locked func() (string, error)
	native func(context.Context) (string, error)
}

var (
	_ strategy.Strategy         = (*Strategy)(nil)
	_ strategy.Watcher          = (*Strategy)(nil)
	_ strategy.Releaser         = (*Strategy)(nil)
	_ strategy.RollbackPreparer = (*Strategy)(nil)
)

// New checks the options. Detect checks the host.
func New(o Options) (*Strategy, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("cannot use apt strategy: %w", err)
	}
	h := hostfs.Root("/")
	s := &Strategy{
		Options: o, host: h, run: program.System(o.Output, environment...), space: h.Filesystem, locked: func() (string, error) { return h.Holder(lockFiles...) },
		sync: func(ctx context.Context, tell func(string)) error {
			return errors.Join(h.Sync(ctx, synced...), h.SyncMounts(ctx, tell))
		},
	}
	s.native = s.architecture()
	return s, nil
}

func (o Options) withDefaults() Options {
	d := Defaults()
	for _, field := range []struct {
		value    *string
		standard string
	}{
		{&o.Conffiles, d.Conffiles},
		{&o.Removals, d.Removals},
		{&o.Phased, d.Phased},
		{&o.ThirdParty, d.ThirdParty},
	} {
		if *field.value == "" {
			*field.value = field.standard
		}
	}
	if o.LockLimit == 0 {
		o.LockLimit = d.LockLimit
	}
	if len(o.Versions) == 0 {
		o.Versions = d.Versions
	}
	return o
}

func (o Options) check() error {
	for _, field := range []struct {
		name, value string
		allowed     []string
	}{
		{"apt-conffiles", o.Conffiles, []string{"keep", "replace", "default"}},
		{"apt-removals", o.Removals, []string{"refuse", "allow"}},
		{"apt-phased", o.Phased, []string{"exclude", "include"}},
		{"apt-third-party", o.ThirdParty, []string{"disable", "keep"}},
	} {
		if !slices.Contains(field.allowed, field.value) {
			return fmt.Errorf("%s: %.100q is invalid; use one of %s", field.name, field.value, strings.Join(field.allowed, ", "))
		}
	}
	for _, word := range o.Versions {
		if !packageWord().MatchString(word) {
			return notPackage("apt-versions", word)
		}
		if strings.Contains(word, "=") {
			return patternHasVersion("apt-versions", word)
		}
	}
	switch {
	case o.LockLimit < 0:
		return fmt.Errorf("apt-lock-limit: %s is invalid; use a time above 0s, such as 10m", o.LockLimit)
	case !filepath.IsAbs(o.StateDir):
		return fmt.Errorf("state folder %q is invalid; use an absolute path", o.StateDir)
	}
	if o.Snapshot != "" {
		if err := o.Snapshot.Check(addressWords...); err != nil {
			return fmt.Errorf("apt-snapshot: %w", err)
		}
	}
	return nil
}

// Detect checks that apt and dpkg are there.
func (s *Strategy) Detect(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var lacks []string
	for _, name := range []string{"/usr/bin/apt-get", "/usr/bin/apt-cache", "/usr/bin/apt-mark", "/usr/bin/dpkg", "/usr/bin/dpkg-query", "/var/lib/dpkg/status"} {
		if !s.host.Exists(name) {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("cannot upgrade by apt: this host lacks %s; apt upgrades Debian and Ubuntu", strings.Join(lacks, ", "))
	}
	if string(s.host) == "/" && os.Geteuid() != 0 {
		return errors.New("cannot upgrade by apt: the worker is not root, and dpkg needs root")
	}
	return nil
}

// Versions returns the versions of the packages that the patterns match, with the
// release of the system and its kernels.
func (s *Strategy) Versions(ctx context.Context) (map[string]string, error) {
	now, err := s.packages(ctx)
	if err != nil {
		return nil, err
	}
	return s.versions(now, func(name string) bool { return strategy.Matches(s.Options.Versions, name) })
}

// versions returns the versions of some packages with those of the system.
func (s *Strategy) versions(now packages, counts func(name string) bool) (map[string]string, error) {
	versions, err := osinfo.Read(string(s.host))
	if err != nil {
		return nil, err
	}
	for name, have := range now {
		if have.isInstalled() && counts(name) {
			versions[name] = have.version
		}
	}
	return versions, nil
}

// VersionPaths implements strategy.Watcher.
func (s *Strategy) VersionPaths() []string {
	return append(osinfo.Paths(string(s.host)), s.host.Path("/var/lib/dpkg/status"))
}

// Releases implements strategy.Releaser.
func (s *Strategy) Releases() []release.Kind { return []release.Kind{release.OfPackages} }

// Missing implements strategy.Strategy: a package counts when it is installed,
// configured and of the planned version, and so does what the release installs.
func (s *Strategy) Missing(ctx context.Context, job strategy.Job) ([]message.Change, error) {
	now, err := s.packages(ctx)
	if err != nil {
		return nil, err
	}
	versions, err := s.versions(now, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	return job.WithInstalls(now.missing(job.Plan.Changes), versions), nil
}

// packages asks dpkg for all packages.
func (s *Strategy) packages(ctx context.Context) (packages, error) {
	native, err := s.native(ctx)
	if err != nil {
		return nil, err
	}
	out, err := s.read(ctx, "dpkg-query", "-W", "-f", statusFormat)
	if err != nil {
		return nil, err
	}
	return parseStatus(out, native)
}

// architecture returns a function that asks dpkg once for the architecture of the host.
func (s *Strategy) architecture() func(context.Context) (string, error) {
	var mu sync.Mutex
	var known string
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if known != "" {
			return known, nil
		}
		printed, err := s.read(ctx, "dpkg", "--print-architecture")
		known = strings.TrimSpace(printed)
		return known, err
	}
}

// read runs a command that only reads, and returns its standard output.
func (s *Strategy) read(ctx context.Context, name string, args ...string) (string, error) {
	c := program.Command{Name: name, Args: args, Quiet: true}
	ended, err := s.run(ctx, c)
	if err == nil && ended.Exit != 0 {
		err = failure(c.Describe(), ended, nil)
	}
	return ended.Stdout, err
}

// packageWord is a package, or a pattern of packages, with or without an architecture
// and a version. It begins with no "-", so apt takes it for no option.
var packageWord = text.Pattern(`^[a-z0-9*?][a-z0-9+.*?-]*(:[a-z0-9-]+)?(=[A-Za-z0-9][A-Za-z0-9.+:~-]*)?$`)

// listed is what lists packages, for errors.
const listed = "only of the release"

// checkWords checks the packages of a list.
func checkWords(words []string) error {
	for _, word := range words {
		if !packageWord().MatchString(word) {
			return notPackage(listed, word)
		}
		if name, _, exact := strings.Cut(word, "="); exact && strings.ContainsAny(name, "*?") {
			return patternHasVersion(listed, word)
		}
	}
	return nil
}

func notPackage(field, word string) error {
	return fmt.Errorf("%s: %.100q is not a package; use a name such as nginx, a pattern such as linux-image-*, or name=version", field, word)
}

func patternHasVersion(field, word string) error {
	return fmt.Errorf("%s: %.100q names a version; a pattern has none", field, word)
}

// exactly are the packages of a list that are to have a version.
func exactly(words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !strings.Contains(word, "=") })
}
