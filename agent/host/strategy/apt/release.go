package apt

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/osinfo"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/hostfs"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// An upgrade of the distribution writes the new sources beside its state first, and fetches by
// them; /etc/apt changes when the upgrade begins. So a prepare that fails has nothing
// to undo.

const (
	aptFolder   = "/etc/apt"
	mainSources = "sources.list"
	moreSources = "sources.list.d"
)

// staged is where the new sources are until the upgrade, and kept where the old ones
// are after it.
func (s *Strategy) staged() string { return filepath.Join(s.StateDir, "release", "new") }
func (s *Strategy) kept() string   { return filepath.Join(s.StateDir, "release", "old") }

// prepareRelease checks whether the host can go to the distribution's release, stages the sources
// and fetches their lists.
func (s *call) prepareRelease(ctx context.Context) error {
	release, err := osinfo.ReadRelease(string(s.host))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(s.staged()); err != nil {
		return err
	}
	if release.Codename == s.what.Distribution {
		return nil // What the release still lacks is a plain upgrade.
	}
	if release.Codename == "" {
		return strategy.Fail(message.Install, fmt.Errorf("/etc/os-release has no VERSION_CODENAME, so nothing tells which sources are those of %s", release.Name))
	}
	if s.Snapshot != "" && !s.what.AsOf.IsZero() {
		// Whose the sources are is in the lists of the host's own.
		own := *s
		own.sources = nil
		if err := own.update(ctx); err != nil {
			return err
		}
	}
	if err := s.ready(ctx, release.Codename); err != nil {
		return err
	}
	if err := s.stage(ctx, release); err != nil {
		return err
	}
	s.progress(8, "fetching the lists of "+s.what.Distribution)
	return s.lists(ctx, "/", s.staged(), sourceOptions(filepath.Join(s.staged(), mainSources), filepath.Join(s.staged(), moreSources)))
}

// ready checks that nothing of the present release is left to do or held.
func (s *call) ready(ctx context.Context, now string) error {
	all, err := s.packages(ctx)
	if err != nil {
		return err
	}
	var held []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].want == "hold" && all[name].isInstalled() {
			held = append(held, name)
		}
	}
	if len(held) > 0 {
		return strategy.Fail(message.Install, fmt.Errorf("%s held by apt-mark, which a release upgrade cannot respect; %s", few(held), remedy.AptUnhold.With(strings.Join(held, " "))))
	}
	would, err := s.simulate(ctx, "dist-upgrade")
	if err != nil {
		return err
	}
	if left := len(would.changes) + len(would.kept); left > 0 {
		return strategy.Fail(message.Install, fmt.Errorf("%s of %s can be upgraded still (%s); %s",
			text.Count(left, "package", "packages"), now, few(slices.Concat(message.ChangeTexts(would.plain()), would.kept)), remedy.AptUpgradeFirst))
	}
	return nil
}

// stage writes the sources of the new release, and copies of the present ones.
func (s *call) stage(ctx context.Context, release osinfo.Release) error {
	origins, err := s.read(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)\t$(RELEASE)\t$(ORIGIN)")
	if err != nil {
		return err
	}
	r := rewriting{from: release.Codename, to: s.what.Distribution, own: ownSources(origins, release.ID), disable: s.ThirdParty == "disable"}
	files, err := sourceFiles(s.host, aptFolder)
	if err != nil {
		return err
	}
	moved := 0
	for _, folder := range []string{filepath.Join(s.staged(), moreSources), filepath.Join(s.kept(), moreSources)} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		changed, err := r.file(name, files[name])
		if err != nil {
			return strategy.Fail(message.Repository, fmt.Errorf("%s: %w", filepath.Join(aptFolder, name), err))
		}
		moved += len(changed.moved)
		for _, entry := range changed.foreign {
			s.progress(8, message.CleanText(fmt.Sprintf("the source %s %s is not of %s: %s", entry.uri, entry.suite, release.ID, map[bool]string{true: "disabled", false: "kept"}[r.disable])))
		}
		for folder, text := range map[string]string{s.staged(): changed.text, s.kept(): files[name]} {
			if err := durable.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	if moved == 0 {
		return strategy.Fail(message.Repository, fmt.Errorf("no source of this host is of %s; %s", release.Codename, remedy.AptNoSuite))
	}
	return nil
}

// ownSources reports which sources are the distribution's, by the origin that their
// Release files give: "Debian", "Debian Backports".
func ownSources(printed, id string) func(sourceEntry) bool {
	own := map[sourceEntry]bool{}
	for line := range strings.Lines(printed) {
		fields := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		if len(fields) == 3 {
			own[sourceEntry{strings.TrimRight(fields[0], "/"), fields[1]}] = strings.HasPrefix(strings.ToLower(fields[2]), id)
		}
	}
	return func(e sourceEntry) bool { return own[sourceEntry{strings.TrimRight(e.uri, "/"), e.suite}] }
}

// sourceFiles reads sources, by their names below a folder such as /etc/apt.
func sourceFiles(root hostfs.Root, folder string) (map[string]string, error) {
	names, err := root.Names(filepath.Join(folder, moreSources))
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, name := range append([]string{mainSources}, prefixed(names)...) {
		if !root.Exists(filepath.Join(folder, name)) {
			continue
		}
		if files[name], err = root.Read(filepath.Join(folder, name)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// prefixed are the names that apt reads in sources.list.d.
func prefixed(names []string) []string {
	var list []string
	for _, name := range names {
		if ending := filepath.Ext(name); ending == ".list" || ending == ".sources" {
			list = append(list, filepath.Join(moreSources, name))
		}
	}
	return list
}

// switchRelease puts the staged sources in place, each file at once. It may be called
// again after a crash.
func (s *call) switchRelease() error { return s.replaceSources(s.kept(), s.staged()) }

// undoRelease puts the old sources back if the upgrade has changed nothing else.
func (s *call) undoRelease(ctx context.Context, changes []message.Change) error {
	if s.what.Distribution == "" {
		return nil
	}
	now, err := s.packages(ctx)
	if err != nil || !now.untouched(changes) {
		return err
	}
	return s.replaceSources(s.staged(), s.kept())
}

// replaceSources replaces the files of sources that are as they are in the folder
// before by those of the folder after.
func (s *call) replaceSources(before, after string) error {
	if _, err := os.Stat(s.staged()); s.what.Distribution == "" || os.IsNotExist(err) {
		return nil
	}
	files, err := sourceFiles(s.host, aptFolder)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		was, errBefore := os.ReadFile(filepath.Join(before, name))
		next, errAfter := os.ReadFile(filepath.Join(after, name))
		switch {
		case files[name] == string(next) && errAfter == nil:
		case errBefore != nil || errAfter != nil || files[name] != string(was):
			return strategy.Fail(message.Install, fmt.Errorf("%s was changed since the host was prepared; %s", filepath.Join(aptFolder, name), remedy.AptChangedFile))
		default:
			if err := durable.WriteFile(s.host.Path(filepath.Join(aptFolder, name)), next, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// distribution plans the whole upgrade to a release of the distribution, and names the packages
// that no source has.
func (d *decision) distribution(ctx context.Context) (err error) {
	if d.would, err = d.simulate(ctx, "dist-upgrade"); err != nil {
		return err
	}
	if err := d.rules.refuses(d.would); err != nil {
		return strategy.Fail(message.Install, err)
	}
	changed := map[string]bool{}
	for _, c := range d.would.changes {
		changed[c.Name] = true
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d.now)) {
		if d.now[name].isInstalled() && !changed[name] {
			names = append(names, name)
		}
	}
	offers, err := d.offers(ctx, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		if have := d.now[name]; !offers[name].has(have.version) && offers[name].candidate == have.version {
			d.held = append(d.held, message.HeldPackage{Name: name, Version: have.version, Reason: "no source of " + d.what.Distribution + " has it"})
		}
	}
	return d.hold(ctx, heldBack{now: d.now, deferred: d.would.deferred, otherwise: "apt cannot upgrade it: its dependencies are not met"}, d.would.kept)
}
