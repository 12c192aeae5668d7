// Package rauc is the strategy for systems with two root slots that RAUC writes in
// turn. It downloads a bundle, has RAUC check and install it over D-Bus, and asks for
// the reboot into the other slot.
//
// RAUC decides whether a bundle is trusted and which slot it goes to; the boot loader
// decides which slot starts. The strategy compares what they say with the plan, and
// believes no exit code. It never writes to a slot and keeps nothing but the download.
//
// # The version of a bundle
//
// A bundle is known by the version in its manifest. A slot has a plan once that version
// is installed and the boot loader takes the slot next; two bundles of one version are
// the same to the strategy.
//
// # Starts of the machine
//
// RAUC notes when it made a slot the next one to start. If that was done last to a slot
// that does not run, and the boot loader would not take it now, the machine has given
// it up by itself. Confirm then marks the slot that runs as good and the other as bad:
// with boot counting both count as tried, and the next start would take the bad one.
package rauc

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/download"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/osinfo"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Options configure the strategy.
type Options struct {
	// Bundle is the address of the bundle, https, or the absolute path of a file.
	// "{version}" stands for Version, "{compatible}" for RAUC's name of this kind of
	// machine.
	Bundle string
	// Version is the version to go to; if it is empty, the one of the bundle.
	Version string
	// SHA256 is the checksum of the bundle in hexadecimal; optional, for RAUC checks
	// the signature of the bundle anyway.
	SHA256 string
	// CAFile has the certificates to trust for Bundle, PEM; the system's if empty.
	CAFile string
	// PlainHTTP allows http to any machine, and not only to this one.
	PlainHTTP bool
	// MaxSize is the largest size of a bundle, in bytes; zero means
	// download.DefaultLimit.
	MaxSize int64
	// StateDir is a folder of the strategy, for the downloaded bundle.
	StateDir string

	// bus is the address of the bus of RAUC's service; the system's if it is empty.
	bus string
	// root is the root folder of the system whose release is read; "/" if empty.
	root string
}

// Strategy upgrades a host by RAUC.
type Strategy struct {
	o      Options
	folder *download.Folder
}

var (
	_ strategy.Strategy  = (*Strategy)(nil)
	_ strategy.Confirmer = (*Strategy)(nil)
	_ strategy.Watcher   = (*Strategy)(nil)
)

// sha256Text is a SHA-256 in hexadecimal.
var sha256Text = text.Pattern(`^[0-9a-f]{64}$`)

// New checks the options and creates the state folder.
func New(o Options) (*Strategy, error) {
	if o.root == "" {
		o.root = "/"
	}
	o.SHA256 = strings.ToLower(o.SHA256)
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("cannot use the rauc strategy: %w", err)
	}
	folder, err := download.Open(download.Options{Dir: o.StateDir, CAFile: o.CAFile, Plain: o.PlainHTTP, Limit: o.MaxSize})
	if err != nil {
		return nil, fmt.Errorf("cannot use the rauc strategy: %w", err)
	}
	return &Strategy{o, folder}, nil
}

func (o Options) check() error {
	switch {
	case o.Bundle == "":
		return errors.New("rauc-bundle is missing; set the address of the bundle, such as https://updates.example.org/system-{version}.raucb")
	case o.StateDir == "":
		return errors.New("it needs a state folder")
	case o.SHA256 != "" && !sha256Text().MatchString(o.SHA256):
		return fmt.Errorf("rauc-sha256: %.80q is no SHA-256; use its 64 hexadecimal digits", o.SHA256)
	case o.Version != message.CleanText(o.Version), len(o.Version) > message.MaxPlanName:
		return fmt.Errorf("rauc-version: %.80q is no version; use up to %d bytes of plain text", o.Version, message.MaxPlanName)
	case strings.Contains(o.Bundle, "{version}") && o.Version == "":
		return errors.New("rauc-bundle has {version}, and rauc-version is missing")
	}
	address := o.address("compatible")
	if at := strings.IndexAny(address, "{}"); at >= 0 {
		return fmt.Errorf("rauc-bundle has %q; it may have {version} and {compatible}", text.Fit(address[at:], 40, "..."))
	}
	if o.isFile() {
		return nil
	}
	err := download.CheckAddress(address, o.PlainHTTP)
	switch {
	case err != nil && strings.HasPrefix(address, "http:"):
		return fmt.Errorf("rauc-bundle: %w (rauc-allow-http)", err)
	case err != nil:
		return fmt.Errorf("rauc-bundle: %w", err)
	}
	return nil
}

// isFile reports whether the bundle is a file of this machine.
func (o Options) isFile() bool { return filepath.IsAbs(o.Bundle) }

// address returns the address of the bundle for a kind of machine.
func (o Options) address(compatible string) string {
	escape := url.PathEscape
	if o.isFile() {
		escape = func(s string) string { return s }
	}
	return strings.NewReplacer("{version}", escape(o.Version), "{compatible}", escape(compatible)).Replace(o.Bundle)
}

// ask calls RAUC's service and asks what it says about the host.
func (s *Strategy) ask(ctx context.Context, then func(*service, system) error) error {
	rauc, err := connect(s.o.bus)
	if err != nil {
		return err
	}
	defer rauc.close()
	system, err := rauc.system(ctx)
	if err != nil {
		return err
	}
	return then(rauc, system)
}

// Detect checks that RAUC has two slots of which one runs.
func (s *Strategy) Detect(ctx context.Context) error {
	err := s.ask(ctx, func(_ *service, now system) error { return now.check() })
	if err != nil {
		return fmt.Errorf("cannot upgrade by RAUC: %w", err)
	}
	return nil
}

// Versions returns the version that runs, that of each slot, and the release.
func (s *Strategy) Versions(ctx context.Context) (versions map[string]string, err error) {
	if versions, err = osinfo.Read(s.o.root); err != nil {
		return nil, err
	}
	err = s.ask(ctx, func(_ *service, now system) error {
		slots, err := now.versions()
		for name, version := range slots {
			versions[name] = version
		}
		return err
	})
	return versions, err
}

// VersionPaths implements strategy.Watcher.
func (s *Strategy) VersionPaths() []string {
	paths := osinfo.Paths(s.o.root)
	for _, name := range []string{"etc/rauc/system.conf", "run/rauc/system.conf", "usr/lib/rauc/system.conf"} {
		conf, err := os.ReadFile(filepath.Join(s.o.root, name))
		if err != nil {
			continue
		}
		for _, file := range statusFiles(string(conf)) {
			// What has no folder cannot be watched.
			if path := filepath.Join(s.o.root, file); isFolder(filepath.Dir(path)) {
				paths = append(paths, path)
			}
		}
		break
	}
	return paths
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// statusFiles returns the files that RAUC writes when a slot has another version or is
// marked, by its system.conf. Without any it keeps the status in the slots themselves, of
// which another one than the running is not mounted.
func statusFiles(conf string) (files []string) {
	section := ""
	for line := range strings.Lines(conf) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSuffix(name, "]")
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		value = strings.TrimSpace(value)
		if section != "system" || !filepath.IsAbs(value) {
			continue
		}
		switch strings.TrimSpace(key) {
		case "statusfile", "grubenv":
			files = append(files, value)
		case "data-directory":
			files = append(files, filepath.Join(value, "central.raucs"))
		}
	}
	return files
}

// Plan returns what the bundle changes, if its version is known without a download.
func (s *Strategy) Plan(ctx context.Context, job strategy.Job) (plan message.ChangeSet, err error) {
	err = s.ask(ctx, func(rauc *service, now system) error {
		version := s.o.Version
		file, here := s.here(now)
		if version == "" && here {
			b, err := s.inspect(ctx, rauc, now, file.Path)
			if err != nil {
				return err
			}
			version = b.version
		}
		if version == "" {
			return fmt.Errorf("%w: the bundle is not downloaded yet, and rauc-version does not tell its version", strategy.ErrNoPlan)
		}
		plan, err = planOf(now, version, file.Size, job.Rejected)
		return err
	})
	return plan, err
}

// planOf returns what a bundle changes.
func planOf(now system, version string, size int64, rejected message.Rejected) (message.ChangeSet, error) {
	systems, err := now.systems()
	return systems.Plan(version, size, "the new system starts from another slot", rejected), err
}

// here returns the bundle if it is on this machine.
func (s *Strategy) here(now system) (download.File, bool) {
	address := s.o.address(now.compatible)
	if !s.o.isFile() {
		return s.folder.Kept(address)
	}
	info, err := os.Stat(address)
	if err != nil || !info.Mode().IsRegular() {
		return download.File{}, false
	}
	return download.File{Path: address, Size: info.Size()}, true
}

// Prepare downloads the bundle and has RAUC check it. Nothing is written to a slot.
func (s *Strategy) Prepare(ctx context.Context, job strategy.Job) (plan message.ChangeSet, err error) {
	err = s.ask(ctx, func(rauc *service, now system) error {
		if err := now.check(); err != nil {
			return err
		}
		if s.o.Version != "" {
			// A version that runs or was rolled back needs no download.
			if plan, err = planOf(now, s.o.Version, 0, job.Rejected); err != nil || len(plan.Changes) == 0 {
				return err
			}
		}
		file, err := s.fetch(ctx, now, job.Progress)
		if err != nil {
			return err
		}
		job.Progress(-1, "RAUC checks the bundle")
		b, err := s.inspect(ctx, rauc, now, file.Path)
		if err != nil {
			return err
		}
		plan, err = planOf(now, b.version, file.Size, job.Rejected)
		return err
	})
	if err != nil {
		return message.ChangeSet{}, err
	}
	return plan, nil
}

func (s *Strategy) fetch(ctx context.Context, now system, tell func(int, string)) (download.File, error) {
	address := s.o.address(now.compatible)
	if s.o.isFile() {
		file, ok := s.here(now)
		if !ok {
			return file, strategy.Fail(message.Artifact, fmt.Errorf("there is no bundle at %s", address))
		}
		return file, nil
	}
	told := -1
	return s.folder.Fetch(ctx, address, s.o.SHA256, func(done, total int64) {
		percent := -1
		if total > 0 {
			percent = int(done * 100 / total)
		}
		if percent != told {
			told = percent
			tell(percent, fmt.Sprintf("downloading the bundle: %d of %d bytes", done, total))
		}
	})
}

// inspect has RAUC check a bundle, and checks that it is for this host.
func (s *Strategy) inspect(ctx context.Context, rauc *service, now system, path string) (bundle, error) {
	b, err := rauc.inspect(ctx, path)
	if err != nil {
		return b, fmt.Errorf("cannot use the bundle %s: %w", path, errors.Join(err, s.forget(err)))
	}
	if err := b.check(now, s.o.Version); err != nil {
		return b, strategy.Fail(message.Artifact, fmt.Errorf("cannot use the bundle %s: %w", path, err))
	}
	return b, nil
}

// forget has the next preparation download a bundle again that RAUC refuses or cannot install. It
// may have been damaged on its way, and its server would call what is here unchanged for ever.
func (s *Strategy) forget(failure error) error {
	class := strategy.ClassOf(failure)
	if s.o.isFile() || class != message.Artifact && class != message.Install {
		return nil
	}
	return s.folder.Forget()
}

// check returns an error for a bundle that is not the one wanted for a system.
func (b bundle) check(now system, version string) error {
	switch {
	case b.compatible != now.compatible:
		return fmt.Errorf("it is for %.80q, and this machine is %.80q", b.compatible, now.compatible)
	case b.version == "":
		return errors.New("its manifest has no version; set version= in the section [update] when it is built")
	case b.version != message.CleanText(b.version), len(b.version) > message.MaxPlanName:
		return fmt.Errorf("its version %.80q is no plain text of up to %d bytes", b.version, message.MaxPlanName)
	case version != "" && b.version != version:
		return fmt.Errorf("it has version %s, and rauc-version is %s", b.version, version)
	}
	return nil
}

// Upgrade has RAUC install the bundle of the plan, unless that was done.
func (s *Strategy) Upgrade(ctx context.Context, job strategy.Job) (outcome strategy.Outcome, err error) {
	if len(job.Plan.Changes) == 0 {
		return strategy.Done, nil
	}
	err = s.ask(ctx, func(rauc *service, now system) error {
		systems, err := now.systems()
		if outcome = systems.Outcome(job.Plan); err != nil || outcome != strategy.NotDone {
			return err
		}
		if err := s.install(ctx, rauc, now, job); err != nil {
			return err
		}
		outcome, err = s.activate(ctx, rauc, job.Plan)
		return err
	})
	return outcome, err
}

func (s *Strategy) install(ctx context.Context, rauc *service, now system, job strategy.Job) error {
	want := job.Plan.Changes[0]
	file, ok := s.here(now)
	if !ok {
		return strategy.Fail(message.Artifact, errors.New("the bundle that was prepared is gone; the next run downloads it again"))
	}
	b, err := s.inspect(ctx, rauc, now, file.Path)
	if err != nil {
		return err
	}
	if b.version != want.To {
		return strategy.Fail(message.Artifact, fmt.Errorf("the bundle has version %s, and %s was prepared; start another run for it", b.version, want.To))
	}
	running, err := now.running()
	if err != nil {
		return err
	}
	if err := now.checkClock(time.Now()); err != nil {
		return err
	}
	if err := rauc.apply(ctx, now, now.keep(running)); err != nil {
		return err
	}
	// RAUC chooses the slot when it is written, after the choice that was just made.
	if now, err = rauc.system(ctx); err != nil {
		return err
	}
	if err := pause(ctx, now); err != nil {
		return err
	}
	// RAUC names the installation so in its log and, from 1.10, with the slot.
	transaction := fmt.Sprintf("%d-upgrade-%s-%s", job.Run, job.Tenant, job.Host)
	if err := rauc.install(ctx, file.Path, transaction, job.Progress); err != nil {
		return fmt.Errorf("cannot install %s %s: %w", want.Name, want.To, errors.Join(err, s.forget(err)))
	}
	// RAUC syncs the slots; its own notes about them it does not.
	unix.Sync()
	return nil
}

// activate returns the outcome of an installation that RAUC calls a success. It makes
// the slot the next one, which a host may have RAUC leave to others
// (activate-installed=false).
func (s *Strategy) activate(ctx context.Context, rauc *service, plan message.ChangeSet) (strategy.Outcome, error) {
	want := plan.Changes[0]
	for range 2 {
		now, err := rauc.system(ctx)
		if err != nil {
			return 0, err
		}
		systems, err := now.systems()
		if outcome := systems.Outcome(plan); err != nil || outcome != strategy.NotDone {
			return outcome, err
		}
		running, err := now.running()
		if err != nil {
			return 0, err
		}
		for _, one := range now.others(running) {
			if one.version == want.To && one.status == "ok" {
				if err := rauc.apply(ctx, now, []mark{{"active", one.name}}); err != nil {
					return 0, err
				}
			}
		}
	}
	return 0, strategy.Fail(message.Install, fmt.Errorf("RAUC has installed %s %s without an error, and yet the boot loader would not start it; rauc status --detailed shows the slots", want.Name, want.To))
}

// Resume waits for an installation that still runs and compares the host with the
// plan. An installation that broke off begins again: the slot is not used.
func (s *Strategy) Resume(ctx context.Context, job strategy.Job) (outcome strategy.Outcome, err error) {
	if len(job.Plan.Changes) == 0 {
		return strategy.Done, nil
	}
	rauc, err := connect(s.o.bus)
	if err != nil {
		return 0, err
	}
	defer rauc.close()
	if err := rauc.idle(ctx, job.Progress); err != nil {
		return 0, err
	}
	now, err := rauc.system(ctx)
	if err != nil {
		return 0, err
	}
	systems, err := now.systems()
	if err != nil {
		return 0, err
	}
	return systems.Resumed(job.Plan)
}

// Missing returns the change of the plan if its version does not run. Before the
// reboot it is enough that it starts next.
func (s *Strategy) Missing(ctx context.Context, job strategy.Job) (missing []message.Change, err error) {
	if len(job.Plan.Changes) == 0 {
		return nil, nil
	}
	err = s.ask(ctx, func(_ *service, now system) error {
		systems, err := now.systems()
		missing = systems.Missing(job)
		return err
	})
	return missing, err
}

// Verify checks that the version of the plan runs.
func (s *Strategy) Verify(ctx context.Context, job strategy.Job) error {
	return s.ask(ctx, func(_ *service, now system) error {
		systems, err := now.systems()
		if err != nil {
			return err
		}
		return systems.Verify(job.Plan)
	})
}

// Rollback has the slot from before start next.
func (s *Strategy) Rollback(ctx context.Context, job strategy.Job) (outcome strategy.Outcome, err error) {
	err = s.ask(ctx, func(rauc *service, now system) error {
		var marks []mark
		if marks, outcome, err = now.back(job.Plan); err != nil {
			return err
		}
		return rauc.apply(ctx, now, marks)
	})
	return outcome, err
}

// Booted tells which system has started, and which the machine gave up.
func (s *Strategy) Booted(ctx context.Context) (boot strategy.Boot, err error) {
	err = s.ask(ctx, func(_ *service, now system) error {
		systems, err := now.systems()
		boot = systems.Boot()
		return err
	})
	return boot, err
}

// Confirm marks the slot that runs as good and the one with the failed version as bad.
func (s *Strategy) Confirm(ctx context.Context, boot strategy.Boot) error {
	return s.ask(ctx, func(rauc *service, now system) error {
		marks, err := now.confirm(boot)
		if err != nil {
			return err
		}
		return rauc.apply(ctx, now, marks)
	})
}
