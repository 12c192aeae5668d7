// Package sysupdate drives systems that systemd-sysupdate updates, for the strategy of package
// image: each version of the system is a set of partitions and files, such as a root file system and
// the kernel image that starts it, and an upgrade installs another set beside the one that runs.
//
// systemd-sysupdate decides where a version comes from, whether its sums and their signature are
// right, and which old one makes room; systemd-boot starts the newest version whose starts have not
// failed. The strategy compares what both have with the plan. It needs systemd 257, whose
// systemd-sysupdate prints JSON.
//
// # Starts of the machine
//
// The name of a boot entry has counters: how many starts it has left, and how many have failed.
// When none is left, the machine has given that version up by itself. Confirm has the running one
// marked as good (systemd-bless-boot). A version that is not to start again gets counters of its
// own, by its name: no start left, and none failed.
package sysupdate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/download"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/osinfo"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/image"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Options configure the strategy.
type Options struct {
	// Output gets what the programs print; nil discards it.
	Output io.Writer

	// root is the root folder of the host; "/" if it is empty.
	root string
	// run runs a program of the host; that of this machine if nil.
	run program.Runner
}

// Strategy upgrades a host by systemd-sysupdate.
type Strategy struct {
	image.Strategy[system]
	o Options
}

var (
	_ strategy.Strategy         = (*Strategy)(nil)
	_ strategy.Confirmer        = (*Strategy)(nil)
	_ strategy.Watcher          = (*Strategy)(nil)
	_ strategy.Releaser         = (*Strategy)(nil)
	_ strategy.RollbackPreparer = (*Strategy)(nil)
)

// New returns the strategy.
func New(o Options) *Strategy {
	o.root = cmp.Or(o.root, "/")
	if o.run == nil {
		o.run = program.System(o.Output)
	}
	return &Strategy{image.Strategy[system]{
		Driver: driver{o}, Tool: "systemd-sysupdate", Root: o.root,
		Reboot: "the new version starts with the machine", Shows: "systemd-sysupdate list shows the versions",
	}, o}
}

// VersionPaths implements strategy.Watcher: the boot entries change when a version is installed.
func (s *Strategy) VersionPaths() []string {
	paths := osinfo.Paths(s.o.root)
	for _, folder := range []string{"efi/EFI/Linux", "boot/EFI/Linux", "boot/efi/EFI/Linux", "efi/loader/entries", "boot/loader/entries"} {
		if info, err := os.Stat(filepath.Join(s.o.root, folder)); err == nil && info.IsDir() {
			paths = append(paths, filepath.Join(s.o.root, folder))
		}
	}
	return paths
}

// driver is the program systemd-sysupdate.
type driver struct{ Options }

// tool returns the path of a program of systemd that not every version has in the same place.
func (d driver) tool(name string) string {
	paths := []string{"/usr/bin/" + name, "/usr/lib/systemd/" + name}
	i := slices.IndexFunc(paths, func(path string) bool { _, err := os.Stat(filepath.Join(d.root, path)); return err == nil })
	return paths[max(i, 0)]
}

// call runs a program and returns what it printed to standard output.
func (d driver) call(ctx context.Context, name string, args ...string) (string, error) {
	quiet := slices.ContainsFunc(args, func(a string) bool { return a == "--json=short" || a == "--help" })
	ended, err := d.run(ctx, program.Command{Name: d.tool(name), Args: args, Quiet: quiet})
	if err == nil && ended.Exit != 0 {
		err = causes.Failure(strings.Join(append([]string{name}, args...), " "), ended, lastLines(ended.Printed))
	}
	return ended.Stdout, err
}

// lastLines are the lines of an output that tell why a program failed.
func lastLines(printed string) []string {
	lines := slices.DeleteFunc(strings.Split(printed, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	for i, line := range lines {
		lines[i] = message.CleanText(text.Fit(strings.TrimSpace(line), message.MaxText/4, "..."))
	}
	return lines[max(0, len(lines)-2):]
}

// Look implements image.Driver.
func (d driver) Look(ctx context.Context) (now system, err error) {
	versions, err := osinfo.Read(d.root)
	if err != nil {
		return now, err
	}
	now.id, now.running, _ = strings.Cut(versions[osinfo.Image], " ")
	all, err := d.list(ctx, "--offline")
	if err != nil {
		return now, err
	}
	for _, version := range all {
		printed, err := d.call(ctx, "systemd-sysupdate", "--offline", "--json=short", "list", version)
		if err != nil {
			return now, err
		}
		one, err := parse[set](printed)
		if err != nil {
			return now, err
		}
		now.sets = append(now.sets, one)
	}
	return now, nil
}

// list returns the versions that the host knows of, newest first.
func (d driver) list(ctx context.Context, options ...string) ([]string, error) {
	printed, err := d.call(ctx, "systemd-sysupdate", append(options, "--json=short", "list")...)
	if err != nil {
		return nil, err
	}
	all, err := parse[listing](printed)
	return slices.DeleteFunc(all.All, func(version string) bool { return !isVersion(version) }), err
}

// check returns an error for a release that systemd-sysupdate cannot carry out.
func check(want image.Want) error {
	switch {
	case want.Release == "":
		return nil
	case want.Version == "":
		return want.Errorf("it has no version, by which systemd-sysupdate chooses what to install")
	case !isVersion(want.Version):
		return want.Errorf("%.80q is no version for systemd-sysupdate; use one such as 2.4", want.Version)
	case want.Content != (download.Content{}):
		return want.Errorf("systemd-sysupdate compares an image with the SHA256SUMS of its source; leave sha256 and size out")
	}
	return nil
}

// Known returns the version that is wanted. What the source has is not known without asking it.
func (d driver) Known(_ context.Context, _ system, want image.Want) (image.Offer, error) {
	if err := check(want); err != nil {
		return image.Offer{}, err
	}
	if want.Version == "" {
		return image.Offer{}, fmt.Errorf("%w: no release says which version to go to, and the newest is known only to the source", strategy.ErrNoPlan)
	}
	return image.Offer{Version: want.Version}, nil
}

// Find asks the source for the version that is wanted, or for the newest.
func (d driver) Find(ctx context.Context, now system, task image.Task) (image.Offer, error) {
	want := task.Want.Version
	if err := check(task.Want); err != nil || want == now.running {
		return image.Offer{Version: want}, err
	}
	if want == "" {
		return d.newest(ctx, now)
	}
	all, err := d.list(ctx)
	if err != nil {
		return image.Offer{}, err
	}
	at, running := slices.Index(all, want), slices.Index(all, now.running)
	switch {
	case at < 0:
		err = fmt.Errorf("the source of systemd-sysupdate has no version %s; it has %s", want, text.List(all, 5))
	case at > running:
		err = fmt.Errorf("version %s is older than %s, which runs, and the boot loader starts the newest", want, now.running)
	}
	return image.Offer{Version: want}, strategy.Fail(message.Artifact, err)
}

// newest returns the newest version of the source, or the one that runs if none is newer.
func (d driver) newest(ctx context.Context, now system) (image.Offer, error) {
	printed, failure := d.call(ctx, "systemd-sysupdate", "--json=short", "check-new")
	found, err := parse[struct {
		Available string `json:"available"`
	}](printed)
	// Some versions end with 1 when they have printed that there is none.
	if failure != nil && err != nil {
		return image.Offer{}, failure
	}
	if err == nil && found.Available != "" && !isVersion(found.Available) {
		err = fmt.Errorf("systemd-sysupdate offers %.80q, which is no version", found.Available)
	}
	systems, lookErr := now.Systems()
	return image.Offer{Version: cmp.Or(found.Available, systems.Next, now.running)}, errors.Join(err, lookErr)
}

// Fetch acquires a version, if this systemd-sysupdate can do that without installing it (systemd
// 260). An older one downloads when it installs.
func (d driver) Fetch(ctx context.Context, now system, _ image.Task, offer image.Offer) (image.Offer, error) {
	if here, ok := now.find(offer.Version); ok && (here.whole() || here.Pending) {
		return offer, nil
	}
	if ok, err := d.acquires(ctx); err != nil || !ok {
		return offer, err
	}
	_, err := d.call(ctx, "systemd-sysupdate", "acquire", offer.Version)
	return offer, err
}

func (d driver) acquires(ctx context.Context) (bool, error) {
	help, err := d.call(ctx, "systemd-sysupdate", "--help")
	return strings.Contains(help, "acquire"), err
}

// Deploy installs a version, or has one start again that is installed.
func (d driver) Deploy(ctx context.Context, now system, _ image.Task, version string) error {
	if err := now.Check(); err != nil {
		return err
	}
	here, ok := now.find(version)
	if ok && here.whole() {
		return d.count(here, tries)
	}
	args := []string{"update", version}
	if ok && here.Pending {
		args = []string{"--offline", "update", version}
	}
	_, err := d.call(ctx, "systemd-sysupdate", args...)
	return err
}

// Kept implements image.Driver.
func (driver) Kept(now system, version string) error {
	if old, ok := now.find(version); !ok || !old.whole() {
		return strategy.Fail(message.Install, fmt.Errorf("%s %s is not installed any more, so it cannot start again", now.id, version))
	}
	running, _ := now.find(now.running)
	return running.countable()
}

// Restore has a version from before start next, by taking all starts from the one that runs.
func (d driver) Restore(_ context.Context, now system, version string) error {
	if err := d.Kept(now, version); err != nil {
		return err
	}
	old, _ := now.find(version)
	running, _ := now.find(now.running)
	if out, _ := old.spent(); out {
		if err := d.count(old, tries); err != nil {
			return err
		}
	}
	return d.count(running, retired)
}

// Discard takes all starts from a version.
func (d driver) Discard(_ context.Context, now system, version string) error {
	found, ok := now.find(version)
	if out, failed := found.spent(); !ok || !found.whole() || out && !failed {
		return nil
	}
	return d.count(found, retired)
}

// count gives the boot entries of a version other counters.
func (d driver) count(one set, with string) error {
	if err := one.countable(); err != nil {
		return err
	}
	for _, entry := range one.entries() {
		from, to := filepath.Join(d.root, entry), filepath.Join(d.root, counted(entry, with))
		if err := os.Rename(from, to); err != nil {
			return fmt.Errorf("cannot set the boot counters of version %s: %w", one.Version, err)
		}
		if err := durable.SyncFolder(filepath.Dir(to)); err != nil {
			return err
		}
	}
	return nil
}

// Confirm marks the entry that started as good, and has a failed version named no more.
func (d driver) Confirm(ctx context.Context, now system, failed string) error {
	if err := d.bless(ctx); err != nil || failed == "" {
		return err
	}
	return d.Discard(ctx, now, failed)
}

// bless marks the entry that started as good. Without boot counting there is nothing to mark.
func (d driver) bless(ctx context.Context) error {
	const name = "systemd-bless-boot"
	if _, err := os.Stat(filepath.Join(d.root, d.tool(name))); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	status, err := d.call(ctx, name, "status")
	if err != nil || strings.TrimSpace(status) != "indeterminate" {
		return err
	}
	_, err = d.call(ctx, name, "good")
	return err
}

// Idle has nothing to wait for: the programs end with the action that runs them.
func (driver) Idle(context.Context, strategy.Job) error { return nil }
