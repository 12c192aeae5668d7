// Package rauc drives systems with two root slots that RAUC writes in turn, for the
// strategy of package image. It downloads a bundle, has RAUC check and install it over D-Bus, and asks for
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

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/download"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/osinfo"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/image"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Options configure the strategy.
type Options struct {
	// Bundle is where a run without a release finds the newest bundle: an address, https, or the
	// absolute path of a file. It is empty for a host that is upgraded only to releases.
	// "{compatible}" stands for RAUC's name of this kind of machine.
	Bundle string
	// CAFile has the certificates to trust for the server of a bundle, PEM; the system's if empty.
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
	image.Strategy[system]
	o Options
}

// driver is RAUC's service.
type driver struct {
	Options
	folder *download.Folder
}

var (
	_ strategy.Strategy         = (*Strategy)(nil)
	_ strategy.Confirmer        = (*Strategy)(nil)
	_ strategy.Watcher          = (*Strategy)(nil)
	_ strategy.Releaser         = (*Strategy)(nil)
	_ strategy.RollbackPreparer = (*Strategy)(nil)
)

// New checks the options and creates the state folder.
func New(o Options) (*Strategy, error) {
	if o.root == "" {
		o.root = "/"
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("cannot use the rauc strategy: %w", err)
	}
	folder, err := download.Open(download.Options{Dir: o.StateDir, CAFile: o.CAFile, Plain: o.PlainHTTP, Limit: o.MaxSize})
	if err != nil {
		return nil, fmt.Errorf("cannot use the rauc strategy: %w", err)
	}
	return &Strategy{image.Strategy[system]{
		Driver: driver{o, folder}, Tool: "RAUC", Root: o.root,
		Reboot: "the new system starts from another slot", Shows: "rauc status --detailed shows the slots",
		Source: o.source,
	}, o}, nil
}

func (o Options) check() error {
	switch {
	case o.StateDir == "":
		return errors.New("it needs a state folder")
	case o.Bundle == "":
		return nil
	}
	address := o.source(system{compatible: "compatible"})
	if at := strings.IndexAny(address, "{}"); at >= 0 {
		return fmt.Errorf("rauc-bundle has %q; it may have {compatible}, and the version to install is declared at the site, by a release", text.Fit(address[at:], 40, "..."))
	}
	if isFile(o.Bundle) {
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

// isFile reports whether a bundle is a file of this machine.
func isFile(address string) bool { return filepath.IsAbs(address) }

// source returns where a machine finds the newest bundle.
func (o Options) source(now system) string {
	compatible := now.compatible
	if !isFile(o.Bundle) {
		compatible = url.PathEscape(compatible)
	}
	return strings.ReplaceAll(o.Bundle, "{compatible}", compatible)
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

// ask calls RAUC's service.
func (d driver) ask(then func(*service) error) error {
	rauc, err := connect(d.bus)
	if err != nil {
		return err
	}
	defer rauc.close()
	return then(rauc)
}

// Look implements image.Driver.
func (d driver) Look(ctx context.Context) (now system, err error) {
	err = d.ask(func(rauc *service) error {
		now, err = rauc.system(ctx)
		return err
	})
	return now, err
}

// errNoBundle is returned by a host that is upgraded only to releases.
var errNoBundle = errors.New("the run has no release, and rauc-bundle is missing; go to a release, or set rauc-bundle to the address of the newest bundle, such as https://updates.example.org/{compatible}.raucb")

// Known returns the bundle if its version is known without a download.
func (d driver) Known(ctx context.Context, now system, want image.Want) (image.Offer, error) {
	file, here := d.here(want)
	switch {
	case want.URL == "":
		return image.Offer{}, fmt.Errorf("%w: %w", strategy.ErrNoPlan, errNoBundle)
	case want.Version != "":
		return image.Offer{Version: want.Version, Size: file.Size}, nil
	case !here:
		return image.Offer{}, fmt.Errorf("%w: the bundle is not downloaded yet, and no release says its version", strategy.ErrNoPlan)
	}
	return d.offer(ctx, now, want, file)
}

// offer has RAUC check a bundle.
func (d driver) offer(ctx context.Context, now system, want image.Want, file download.File) (offer image.Offer, err error) {
	err = d.ask(func(rauc *service) error {
		b, err := d.inspect(ctx, rauc, now, want, file.Path)
		offer = image.Offer{Version: b.version, Size: file.Size, Fetched: true}
		return err
	})
	return offer, err
}

// here returns the bundle if it is on this machine.
func (d driver) here(want image.Want) (download.File, bool) {
	if !isFile(want.URL) {
		return d.folder.Kept(want.URL)
	}
	info, err := os.Stat(want.URL)
	if err != nil || !info.Mode().IsRegular() {
		return download.File{}, false
	}
	return download.File{Path: want.URL, Size: info.Size()}, true
}

// Find returns the version that is wanted, or that of the bundle, which it downloads.
func (d driver) Find(ctx context.Context, now system, task image.Task) (image.Offer, error) {
	if task.Want.URL == "" {
		return image.Offer{}, strategy.Fail(message.Artifact, errNoBundle)
	}
	if task.Want.Version != "" {
		return image.Offer{Version: task.Want.Version}, nil
	}
	return d.Fetch(ctx, now, task, image.Offer{})
}

// Fetch downloads the bundle and has RAUC check it. Nothing is written to a slot.
func (d driver) Fetch(ctx context.Context, now system, task image.Task, _ image.Offer) (image.Offer, error) {
	file, err := d.fetch(ctx, task.Want, task.Progress)
	if err != nil {
		return image.Offer{}, err
	}
	task.Progress(-1, "RAUC checks the bundle")
	return d.offer(ctx, now, task.Want, file)
}

func (d driver) fetch(ctx context.Context, want image.Want, tell func(int, string)) (download.File, error) {
	if isFile(want.URL) {
		file, ok := d.here(want)
		if !ok {
			return file, strategy.Fail(message.Artifact, fmt.Errorf("there is no bundle at %s", want.URL))
		}
		if err := want.Content.Check(file.Path); err != nil {
			return file, fmt.Errorf("cannot use the bundle %s: %w", file.Path, err)
		}
		return file, nil
	}
	told := -1
	return d.folder.Fetch(ctx, want.URL, want.Content, func(done, total int64) {
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
func (d driver) inspect(ctx context.Context, rauc *service, now system, want image.Want, path string) (bundle, error) {
	b, err := rauc.inspect(ctx, path)
	if err != nil {
		return b, fmt.Errorf("cannot use the bundle %s: %w", path, errors.Join(err, d.forget(want, err)))
	}
	if err := b.check(now, want); err != nil {
		return b, strategy.Fail(message.Artifact, fmt.Errorf("cannot use the bundle %s: %w", path, err))
	}
	return b, nil
}

// forget has the next preparation download a bundle again that RAUC refuses or cannot install. It
// may have been damaged on its way, and its server would call what is here unchanged for ever.
func (d driver) forget(want image.Want, failure error) error {
	class := strategy.ClassOf(failure)
	if isFile(want.URL) || class != message.Artifact && class != message.Install {
		return nil
	}
	return d.folder.Forget()
}

// check returns an error for a bundle that is not the one wanted for a system.
func (b bundle) check(now system, want image.Want) error {
	switch {
	case b.compatible != now.compatible:
		return fmt.Errorf("it is for %.80q, and this machine is %.80q", b.compatible, now.compatible)
	case b.version == "":
		return errors.New("its manifest has no version; set version= in the section [update] when it is built")
	case b.version != message.CleanText(b.version), len(b.version) > message.MaxPlanName:
		return fmt.Errorf("its version %.80q is no plain text of up to %d bytes", b.version, message.MaxPlanName)
	case want.Version != "" && b.version != want.Version:
		return fmt.Errorf("it has version %s, and the version of release %s is %s", b.version, want.Release, want.Version)
	}
	return nil
}

// Deploy has RAUC install the bundle.
func (d driver) Deploy(ctx context.Context, now system, task image.Task, version string) error {
	return d.ask(func(rauc *service) error {
		if err := d.install(ctx, rauc, now, task, version); err != nil {
			return err
		}
		return activate(ctx, rauc, version)
	})
}

func (d driver) install(ctx context.Context, rauc *service, now system, task image.Task, version string) error {
	file, ok := d.here(task.Want)
	if !ok {
		return strategy.Fail(message.Artifact, errors.New("the bundle that was prepared is gone; the next run downloads it again"))
	}
	b, err := d.inspect(ctx, rauc, now, task.Want, file.Path)
	if err != nil {
		return err
	}
	if b.version != version {
		return strategy.Fail(message.Artifact, fmt.Errorf("the bundle has version %s, and %s was prepared; start another run for it", b.version, version))
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
	transaction := fmt.Sprintf("%d-upgrade-%s-%s", task.Run, task.Tenant, task.Host)
	if err := rauc.install(ctx, file.Path, transaction, task.Progress); err != nil {
		return fmt.Errorf("cannot install %s %s: %w", running.class, version, errors.Join(err, d.forget(task.Want, err)))
	}
	return nil
}

// activate makes the slot that RAUC has written the next one, which a host may have RAUC
// leave to others (activate-installed=false).
func activate(ctx context.Context, rauc *service, version string) error {
	now, err := rauc.system(ctx)
	if err != nil {
		return err
	}
	running, err := now.running()
	if err != nil {
		return err
	}
	if staged, found := now.staged(running); found && staged.version == version {
		return nil
	}
	for _, one := range now.others(running) {
		if one.version == version && one.status == "ok" {
			return rauc.apply(ctx, now, []mark{{"active", one.name}})
		}
	}
	return nil
}

// Kept implements image.Driver.
func (driver) Kept(now system, version string) error {
	_, err := now.restore(version)
	return err
}

// Restore chooses the slot from before.
func (d driver) Restore(ctx context.Context, now system, version string) error {
	marks, err := now.restore(version)
	if err != nil {
		return err
	}
	return d.ask(func(rauc *service) error { return rauc.apply(ctx, now, marks) })
}

// Discard chooses the slot that runs, whatever was chosen in place of it.
func (d driver) Discard(ctx context.Context, now system, _ string) error {
	running, err := now.running()
	if err != nil {
		return err
	}
	return d.ask(func(rauc *service) error { return rauc.apply(ctx, now, now.keep(running)) })
}

// Confirm marks the slot that runs as good and the one with the failed version as bad.
func (d driver) Confirm(ctx context.Context, now system, failed string) error {
	marks, err := now.confirm(failed)
	if err != nil {
		return err
	}
	return d.ask(func(rauc *service) error { return rauc.apply(ctx, now, marks) })
}

// Idle waits for an installation that still runs.
func (d driver) Idle(ctx context.Context, job strategy.Job) error {
	return d.ask(func(rauc *service) error { return rauc.idle(ctx, job.Progress) })
}
