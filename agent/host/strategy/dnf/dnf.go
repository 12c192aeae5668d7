// Package dnf upgrades hosts of the Fedora family (Fedora, CentOS Stream, Red Hat
// Enterprise Linux and what is derived from it) by dnf 4 or dnf5. Prepare refreshes the
// repositories, makes the plan and downloads it; Upgrade has dnf replay exactly the
// planned transaction from the cache; Resume removes the old versions that a killed
// dnf left beside the new ones, installs the new ones again and carries out the rest.
//
// What decides is pure: the reading of the package database (rpm.go) and of what dnf
// would do (resolved.go), the plan (plan.go), the transaction that carries it out or
// repairs it (replay.go), and the class of a failure (classify.go). All that differs
// between dnf 4 and dnf5 stands in one value of each (generation.go, dnf4.go, dnf5.go). The package never
// believes an exit status where it can look: a dnf that was killed leaves two versions
// of a package, and the next dnf upgrade ends with 0 and nothing to do. After an
// interruption it does not believe the package database either (content.go).
package dnf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/rpmversion"
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
	// Snapshot is where the repositories are as they were at a time; empty if they have no past.
	Snapshot strategy.SnapshotURL
	// Versions are patterns of the packages whose versions are published.
	Versions []string
	// LockLimit is how long to wait for another dnf or rpm.
	LockLimit time.Duration
	// StateDir is for the transaction that dnf replays.
	StateDir string
	// Output gets what dnf and rpm print; nil discards it.
	Output io.Writer
}

// Defaults are the values of options that are not given.
func Defaults() Options {
	return Options{
		LockLimit: 10 * time.Minute,
		Versions:  []string{"kernel-core", "dnf", "dnf5", "rpm", "systemd", "glibc", "openssl-libs", "osupgrade-agent"},
	}
}

// Strategy upgrades this host by dnf.
type Strategy struct {
	Options
	*generation
	host   hostfs.Root
	run    program.Runner
	sync   func(ctx context.Context, tell func(string)) error
	space  func(folder string) (hostfs.Filesystem, error)
	locked func() (string, error)
}

var (
	_ strategy.Strategy         = (*Strategy)(nil)
	_ strategy.Watcher          = (*Strategy)(nil)
	_ strategy.Releaser         = (*Strategy)(nil)
	_ strategy.RollbackPreparer = (*Strategy)(nil)
)

// synced are folders whose file systems are synced in any case, of whatever kind they are,
// besides all file systems on disks: packages have files on each of them.
var synced = []string{"/var/lib/rpm", "/usr/lib/sysimage", "/var/lib/dnf", "/etc", "/usr", "/boot"}

// New checks the options. Detect checks the host.
func New(o Options) (*Strategy, error) {
	d := Defaults()
	if o.LockLimit == 0 {
		o.LockLimit = d.LockLimit
	}
	if len(o.Versions) == 0 {
		o.Versions = d.Versions
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("cannot use dnf strategy: %w", err)
	}
	h := hostfs.Root("/")
	g := generationOf(h)
	return &Strategy{
		Options: o, generation: g, host: h, run: program.System(o.Output), space: h.Filesystem,
		sync: func(ctx context.Context, tell func(string)) error {
			return errors.Join(h.Sync(ctx, append(slices.Clone(synced), g.cache, o.StateDir)...), h.SyncMounts(ctx, tell))
		},
		locked: func() (string, error) { return g.holder(h) },
	}, nil
}

func (o Options) check() error {
	if err := checkWords("dnf-versions", o.Versions, false); err != nil {
		return err
	}
	switch {
	case o.LockLimit < 0:
		return fmt.Errorf("dnf-lock-limit: %s is invalid; use a time above 0s, such as 10m", o.LockLimit)
	case !filepath.IsAbs(o.StateDir):
		return fmt.Errorf("state folder %q is invalid; use an absolute path", o.StateDir)
	}
	if o.Snapshot != "" {
		if err := o.Snapshot.Check(repositoryWord); err != nil {
			return fmt.Errorf("dnf-snapshot: %w", err)
		}
	}
	return nil
}

// few lists the first of some texts.
func few(all []string) string { return text.List(all, 5) }

// Detect checks that a dnf and rpm are there.
func (s *Strategy) Detect(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, name := range []string{dnfPath, "/usr/bin/rpm"} {
		if !s.host.Exists(name) && (name != dnfPath || !s.host.Exists(dnf5Path)) {
			return fmt.Errorf("cannot upgrade by dnf: this host lacks %s; dnf upgrades Fedora, Red Hat Enterprise Linux and what is derived from it", name)
		}
	}
	if s.host == "/" && os.Geteuid() != 0 {
		return errors.New("cannot upgrade by dnf: the worker is not root, and rpm needs root")
	}
	return nil
}

// Versions returns the versions of the packages that the patterns match, with the
// release of the system and its kernels. A package of several versions, such as a
// kernel, has its newest.
func (s *Strategy) Versions(ctx context.Context) (map[string]string, error) {
	now, err := s.database(ctx)
	if err != nil {
		return nil, err
	}
	return s.versions(now, func(name string) bool { return strategy.Matches(s.Options.Versions, name) })
}

// versions returns the versions of some packages with those of the system.
func (s *Strategy) versions(now database, counts func(name string) bool) (map[string]string, error) {
	versions, err := osinfo.Read(string(s.host))
	if err != nil {
		return nil, err
	}
	for key := range now {
		name, _ := splitKey(key)
		if counts(name) && versions[name] == "" || versions[name] != "" && rpmversion.Compare(now.newest(key), versions[name]) > 0 {
			versions[name] = now.newest(key)
		}
	}
	return versions, nil
}

// VersionPaths implements strategy.Watcher. It names the database of rpm and not its folder:
// to read an SQLite database writes its shared memory, rpmdb.sqlite-shm, which would have it
// read again and again.
func (s *Strategy) VersionPaths() []string {
	paths := osinfo.Paths(string(s.host))
	for _, folder := range []string{"/var/lib/rpm", "/usr/lib/sysimage/rpm"} {
		for _, name := range []string{"rpmdb.sqlite", "Packages.db", "Packages"} {
			if file := filepath.Join(folder, name); s.host.Exists(file) {
				paths = append(paths, s.host.Path(file))
			}
		}
	}
	return paths
}

// Releases implements strategy.Releaser.
func (s *Strategy) Releases() []release.Kind { return []release.Kind{release.OfPackages} }

// Missing implements strategy.Strategy: a package counts when it is installed in the
// planned version and the version before it is gone, and so does what the release installs.
func (s *Strategy) Missing(ctx context.Context, job strategy.Job) ([]message.Change, error) {
	now, err := s.database(ctx)
	if err != nil {
		return nil, err
	}
	versions, err := s.versions(now, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	return job.WithInstalls(now.missing(job.Plan.Changes), versions), nil
}

// packageWord is a package, or a pattern of packages, with or without a version. It
// begins with no "-", so dnf takes it for no option.
var packageWord = text.Pattern(`^[A-Za-z0-9*?_][A-Za-z0-9+.*?_-]*(=[A-Za-z0-9][A-Za-z0-9.+:~^_-]*)?$`)

// listed is what lists packages, for errors.
const listed = "only of the release"

// checkWords checks packages, or patterns of them, and whether one of them may name a version.
func checkWords(field string, words []string, versions bool) error {
	for _, word := range words {
		if !packageWord().MatchString(word) {
			return fmt.Errorf("%s: %.100q is not a package; use a name such as nginx, a pattern such as kernel-*, or name=version", field, word)
		}
		if name, _, exact := strings.Cut(word, "="); exact && (strings.ContainsAny(name, "*?") || !versions) {
			return fmt.Errorf("%s: %.100q names a version; a pattern has none", field, word)
		}
	}
	return nil
}

// checkWhat returns an error if dnf cannot install what a release selects.
func (s *call) checkWhat() error {
	if s.what.Distribution != "" {
		return strategy.Fail(message.Artifact, fmt.Errorf("the release goes to %s of the distribution, and dnf upgrades within one; leave distribution out", s.what.Distribution))
	}
	exact := slices.DeleteFunc(slices.Clone(s.what.Listed()), func(word string) bool { return !strings.Contains(word, "=") })
	return strategy.Fail(message.Artifact, checkWords(listed, exact, true))
}
