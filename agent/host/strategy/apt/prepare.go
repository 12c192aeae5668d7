package apt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/osinfo"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/begun"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/hostfs"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Plan implements strategy.Strategy: it goes by the lists that the host has.
func (s *Strategy) Plan(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	call, err := s.call(job)
	var plan message.ChangeSet
	switch {
	case err != nil:
	case call.what.Distribution != "":
		return message.ChangeSet{}, fmt.Errorf("the lists of %s are fetched when the host is prepared: %w", call.what.Distribution, strategy.ErrNoPlan)
	case job.Fetch:
		err = call.fetch(ctx)
	default:
		err = call.fetched(ctx)
	}
	if err == nil {
		plan, err = call.plan(ctx, job)
	}
	if strategy.ClassOf(err) == message.Install {
		if left := call.notWhole(ctx); left != nil {
			err = left
		}
	}
	if err != nil {
		return message.ChangeSet{}, fmt.Errorf("cannot plan the upgrade: %w", err)
	}
	return plan, nil
}

// notWhole is why apt plans nothing on a host where dpkg has not finished, and what to do about
// it; nil if dpkg has.
func (s *call) notWhole(ctx context.Context) error {
	found, err := s.condition(ctx, nil)
	switch {
	case err != nil || found.whole():
		return err
	case begun.Covers(begun.Read(s.StateDir), slices.Concat(found.reinstall, found.unfinished)):
		return strategy.Fail(message.Install, fmt.Errorf("the last run has left %s; %s", found.what(), remedy.AptNextRun))
	}
	return found.leftByOthers("interrupted before this plan")
}

// fetch fetches the lists for a plan outside of a run.
func (s *call) fetch(ctx context.Context) error {
	if err := s.awaitLocks(ctx); err != nil {
		return err
	}
	return s.lists(ctx, s.host, aptFolder, nil)
}

// Prepare implements strategy.Strategy.
func (s *Strategy) Prepare(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	return strategy.PrepareBy(ctx, job, "upgrade", func() (*call, error) { return s.call(job) }, (*call).prepare)
}

func (s *call) prepare(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	if err := s.sound(ctx); err != nil {
		return message.ChangeSet{}, err
	}
	s.progress(0, "fetching the lists of packages")
	if err := s.lists(ctx, s.host, aptFolder, nil); err != nil {
		return message.ChangeSet{}, err
	}
	if s.what.Distribution != "" {
		if err := s.prepareRelease(ctx); err != nil {
			return message.ChangeSet{}, err
		}
	}
	plan, err := s.plan(ctx, job)
	if err != nil {
		return message.ChangeSet{}, err
	}
	s.progress(10, "the plan has "+text.Count(len(plan.Changes), "change", "changes"))
	if err := s.download(ctx, plan); err != nil {
		return message.ChangeSet{}, err
	}
	if err := s.keepAutomatic(ctx); err != nil {
		return message.ChangeSet{}, err
	}
	return plan, s.toDisk(ctx)
}

// update fetches the lists, and once more those that are torn and that apt takes for new. By
// default apt-get update ends with 0 when a repository is down, and the old lists stay.
func (s *call) update(ctx context.Context) error {
	fetch := func() error { return s.apt(ctx, span{0, 8}, "-o", "APT::Update::Error-Mode=any", "update") }
	if err := fetch(); err != nil {
		return err
	}
	if dropped, err := s.dropTorn(ctx); err != nil || dropped == 0 {
		return err
	}
	return fetch()
}

// sound checks that dpkg has finished with all packages. What an own run has left is
// repaired; to repair what others have left could change what runs, which prepare must not.
func (s *call) sound(ctx context.Context) error {
	now, err := s.atRest(ctx, nil)
	if err != nil {
		return err
	}
	unfinished := slices.Concat(now.reinstall, now.unfinished)
	if now.whole() {
		return begun.Clear(s.StateDir) // A person may have repaired the host: it stays as it is.
	}
	if left := begun.Read(s.StateDir); begun.Covers(left, unfinished) {
		return strategy.Mend(ctx, left, begun.Of(left, unfinished), s.mending())
	} else if len(left) > 0 && len(unfinished) == 0 {
		return s.repair(ctx, nil) // No package is changed when dpkg merges what it has left.
	}
	return now.leftByOthers("interrupted before this run")
}

// mending is what strategy.Mend calls.
func (s *call) mending() strategy.Mending {
	return strategy.Mending{
		Progress: s.progress, Missing: s.Missing,
		Undo: func(ctx context.Context, changes []message.Change) error {
			_, err := s.rollback(ctx, changes)
			return err
		},
		Do: s.repair,
	}
}

// plan returns what an upgrade changes by the lists that are there.
func (s *call) plan(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	if err := s.listed(ctx); err != nil {
		return message.ChangeSet{}, err
	}
	now, err := s.packages(ctx)
	if err != nil {
		return message.ChangeSet{}, err
	}
	d := &decision{call: s, now: now, rules: allow{removals: s.Removals == "allow", security: s.what.Select == release.Security, except: s.what.Except, rejected: job.Rejected}}
	if err := d.decide(ctx); err != nil {
		return message.ChangeSet{}, err
	}
	plan := message.ChangeSet{Changes: d.would.plain(), Held: d.held}.Sorted()
	if err := s.exact(ctx, plan.Changes); err != nil {
		return message.ChangeSet{}, err
	}
	system, err := osinfo.Read(string(s.host))
	if err == nil {
		err = job.Reaches(now.after(plan.Changes), system)
	}
	if err != nil {
		return message.ChangeSet{}, err
	}
	if len(plan.Changes) > 0 {
		if plan.Download, err = s.toFetch(ctx, plan.Changes); err != nil {
			return message.ChangeSet{}, err
		}
	}
	plan.Reboot = s.willReboot(plan, now)
	return plan, plan.Check()
}

// install returns the command of apt-get that carries a plan out.
func install(changes []message.Change) []string {
	args := append([]string{"install"}, installArguments(changes)...)
	if downgrades(changes) {
		args = append([]string{"--allow-downgrades"}, args...)
	}
	return args
}

// exact checks that the versions of a plan, given one by one, change that and nothing
// else: so will they be installed.
func (s *call) exact(ctx context.Context, changes []message.Change) error {
	if len(changes) == 0 {
		return nil
	}
	would, err := s.simulate(ctx, install(changes)...)
	if err != nil {
		return err
	}
	if err := beyond(changes, would); err != nil {
		return strategy.Fail(message.Install, err)
	}
	if len(would.changes) != len(changes) {
		return strategy.Fail(message.Install, fmt.Errorf("apt would make %d of %d planned changes", len(would.changes), len(changes)))
	}
	return nil
}

// decision finds the changes and what is held back.
type decision struct {
	*call
	now   packages
	rules allow

	would simulation
	held  []message.HeldPackage
}

func (d *decision) decide(ctx context.Context) error {
	switch {
	case d.what.Distribution != "":
		return d.distribution(ctx)
	case d.what.Select == release.Security:
		return d.security(ctx)
	case d.what.Select == release.Listed:
		return d.named(ctx)
	default:
		return d.all(ctx)
	}
}

// everything are the arguments of apt-get that upgrade all packages. "upgrade"
// removes none.
func (d *decision) everything() []string {
	if d.rules.removals {
		return []string{"dist-upgrade"}
	}
	return []string{"--with-new-pkgs", "upgrade"}
}

func (d *decision) all(ctx context.Context) (err error) {
	if d.would, err = d.simulate(ctx, d.everything()...); err != nil {
		return err
	}
	facts := heldBack{now: d.now, deferred: d.would.deferred, otherwise: "apt cannot upgrade it now: its dependencies are not met"}
	names := slices.Concat(d.would.kept, d.would.deferred)
	if d.rules.refuses(d.would) != nil || len(d.what.Only) > 0 {
		var targets []target
		for _, c := range d.would.changes {
			if c.From != "" && c.To != "" {
				targets = append(targets, target{c.Name, c.To})
			}
		}
		if facts.reasons, err = d.choose(ctx, targets); err != nil {
			return err
		}
		names = slices.AppendSeq(names, maps.Keys(facts.reasons))
	} else if facts.reasons, err = d.removals(ctx, d.would.kept); err != nil {
		return err
	}
	return d.hold(ctx, facts, names)
}

// removals tells of packages that are kept back because their upgrade would remove
// others.
func (d *decision) removals(ctx context.Context, kept []string) (map[string]string, error) {
	reasons := map[string]string{}
	if d.rules.removals || len(kept) == 0 {
		return reasons, nil
	}
	would, err := d.simulate(ctx, "dist-upgrade")
	if err != nil || len(would.removed()) == 0 {
		return reasons, err
	}
	for _, c := range would.changes {
		reasons[c.Name] = fmt.Sprintf("with it apt would remove %s, and apt-removals is refuse", few(would.removed()))
	}
	return reasons, nil
}

// choose chooses the targets that the rules allow, and returns the reasons against
// the others.
func (d *decision) choose(ctx context.Context, targets []target) (map[string]string, error) {
	targets = slices.DeleteFunc(targets, func(t target) bool { return d.now[t.name].want == "hold" })
	reasons := map[string]string{}
	targets = slices.DeleteFunc(targets, func(t target) bool {
		if d.rules.rejected.Has(t.name, t.version) {
			reasons[t.name] = t.version + " was rolled back on this host"
		} else if why := strategy.LeftOut(d.what, t.name); why != "" {
			reasons[t.name] = why
		}
		return reasons[t.name] != ""
	})
	would := map[int]simulation{}
	chosen, refused, err := choose(targets, func(some []target) (refused, err error) {
		simulated, err := d.simulate(ctx, append([]string{"install"}, arguments(some)...)...)
		if strategy.ClassOf(err) == message.Install {
			return err, nil
		}
		if err != nil {
			return nil, err
		}
		would[len(some)] = simulated // What is tried next has more than what was chosen so far.
		return d.rules.refuses(simulated), nil
	})
	d.would = would[len(chosen)]
	maps.Copy(reasons, refused)
	return reasons, err
}

// security chooses the packages with a version of security updates that is newer.
func (d *decision) security(ctx context.Context) error {
	all, err := d.simulate(ctx, "dist-upgrade")
	if err != nil {
		return err
	}
	names := slices.Concat(all.kept, all.deferred)
	for _, c := range all.changes {
		if c.From != "" && c.To != "" {
			names = append(names, c.Name)
		}
	}
	offers, err := d.offers(ctx, names)
	if err != nil {
		return err
	}
	known, err := d.known(ctx)
	if err != nil {
		return err
	}
	var targets []target
	for _, name := range names {
		if version := offers[name].securityVersion(known); version != "" {
			targets = append(targets, target{name, version})
		}
	}
	reasons, err := d.choose(ctx, targets)
	if err != nil {
		return err
	}
	changed := map[string]bool{}
	for _, c := range d.would.changes {
		changed[c.Name] = true
	}
	names = slices.DeleteFunc(names, func(name string) bool { return changed[name] })
	return d.hold(ctx, heldBack{now: d.now, reasons: reasons, otherwise: "not a security update"}, names)
}

// named goes by the list of packages. It is all of them or an error: who names
// packages wants them.
func (d *decision) named(ctx context.Context) error {
	if err := checkWords(exactly(d.what.Only)); err != nil {
		return strategy.Fail(message.Artifact, err)
	}
	var targets []target
	var patterns []string
	for _, word := range d.what.Only {
		name, version, exact := strings.Cut(word, "=")
		switch {
		case exact && d.rules.rejected.Has(name, version):
			d.held = append(d.held, message.HeldPackage{Name: name, Version: d.now[name].version, Offered: version, Reason: "it was rolled back on this host"})
		case exact && (d.now[name].version != version || !d.now[name].isInstalled()):
			targets = append(targets, target{name, version})
		case !exact:
			patterns = append(patterns, name)
		}
	}
	names, err := d.expand(patterns)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strategy.LeftOut(d.what, name) != "" })
	offers, err := d.offers(ctx, names)
	if err != nil {
		return err
	}
	var kept []string
	for _, name := range names {
		switch candidate := offers[name].candidate; {
		case d.now[name].want == "hold" || d.rules.rejected.Has(name, candidate):
			kept = append(kept, name)
		case candidate != "" && candidate != d.now[name].version:
			targets = append(targets, target{name, candidate})
		}
	}
	if err := d.hold(ctx, heldBack{now: d.now, otherwise: "it was rolled back on this host"}, kept); err != nil || len(targets) == 0 {
		return err
	}
	args := append([]string{"--allow-downgrades", "install"}, arguments(targets)...)
	if d.would, err = d.simulate(ctx, args...); err != nil {
		return err
	}
	return strategy.Fail(message.Install, d.rules.refuses(d.would))
}

// expand returns the installed packages that match patterns. A pattern that matches
// none is an error: it would upgrade nothing for ever.
func (d *decision) expand(patterns []string) ([]string, error) {
	var names []string
	for _, pattern := range patterns {
		found := 0
		for _, name := range slices.Sorted(maps.Keys(d.now)) {
			if d.now[name].isInstalled() && strategy.Matches([]string{pattern}, name) {
				found++
				names = append(names, name)
			}
		}
		if found == 0 {
			return nil, strategy.Fail(message.Install, fmt.Errorf("%s: %s is not installed; %s", listed, pattern, remedy.AptNotThere.With(pattern)))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// hold tells why packages stay, those with a pin of their own among them.
func (d *decision) hold(ctx context.Context, facts heldBack, names []string) error {
	known, err := d.known(ctx)
	if err != nil {
		return err
	}
	facts.pinned = known.pinned
	for _, name := range known.pinned {
		if d.now[name].isInstalled() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if facts.offers, err = d.offers(ctx, names); err != nil {
		return err
	}
	d.held = append(d.held, facts.list(names)...)
	return nil
}

// download checks the room and fetches the archives of a plan.
func (s *call) download(ctx context.Context, plan message.ChangeSet) error {
	if len(plan.Changes) == 0 {
		return nil
	}
	archives, err := s.records(ctx, plan.Changes)
	if err != nil {
		return err
	}
	if err := s.room(ctx, plan, archives); err != nil {
		return err
	}
	// What is here from an earlier preparation may be damaged, and apt would take it.
	if _, err := s.dropDamaged(plan.Changes, s.sumsOf(plan.Changes, archives)); err != nil {
		return err
	}
	if err := s.fetchArchives(ctx, span{10, 95}, install(plan.Changes)); err != nil {
		return err
	}
	left, err := s.toFetch(ctx, plan.Changes)
	if err != nil {
		return err
	}
	if left > 0 {
		return strategy.Fail(message.Artifact, fmt.Errorf("%d bytes of archives are not in %s after the download; %s", left, archivesFolder, remedy.AptFetchAgain))
	}
	known := s.sumsOf(plan.Changes, archives)
	if err := s.mendArchives(ctx, plan.Changes, known); err != nil {
		return err
	}
	return s.keepSums(known)
}

// fetchArchives has apt fetch the archives of what a command installs. It leaves those of file: sources
// where they are, and refuses them in the upgrade, which must not download. So they are copied.
func (s *call) fetchArchives(ctx context.Context, part span, command []string) error {
	if err := s.apt(ctx, part, append([]string{"--download-only"}, command...)...); err != nil {
		return err
	}
	left, err := s.uris(ctx, command)
	if err != nil {
		return err
	}
	for _, one := range left {
		if one.file == "" {
			continue
		}
		if err := s.copyArchive(one); err != nil {
			return strategy.Fail(message.Repository, fmt.Errorf("cannot copy an archive from its folder on this host: %w", err))
		}
	}
	return nil
}

func (s *call) copyArchive(from uri) (err error) {
	in, err := os.Open(s.host.Path(from.file))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	partial := s.host.Path(filepath.Join(archivesFolder, "partial", from.name))
	out, err := os.Create(partial)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(partial, s.host.Path(filepath.Join(archivesFolder, from.name)))
}

// uris returns what apt still has to fetch for a command.
func (s *call) uris(ctx context.Context, command []string) ([]uri, error) {
	printed, err := s.read(ctx, "apt-get", slices.Concat(s.options(), []string{"--print-uris"}, command)...)
	return parseURIs(printed), err
}

// toFetch is how many bytes that is.
func (s *call) toFetch(ctx context.Context, changes []message.Change) (bytes int64, err error) {
	all, err := s.uris(ctx, install(changes))
	for _, one := range all {
		bytes += one.size
	}
	return bytes, err
}

// records asks apt what its lists say about the archives of a plan.
func (s *call) records(ctx context.Context, changes []message.Change) (map[string]archive, error) {
	native, err := s.native(ctx)
	if err != nil {
		return nil, err
	}
	args := slices.Concat(s.sources, []string{"show", "--no-all-versions"})
	for _, c := range changes {
		if c.To != "" {
			args = append(args, c.Name+"="+c.To)
		}
	}
	if len(args) == len(s.sources)+2 {
		return map[string]archive{}, nil
	}
	printed, err := s.read(ctx, "apt-cache", args...)
	if err != nil {
		return nil, err
	}
	return parseRecords(printed, native), nil
}

// room checks that there is room for a plan.
func (s *call) room(ctx context.Context, plan message.ChangeSet, archives map[string]archive) error {
	now, err := s.packages(ctx)
	if err != nil {
		return err
	}
	return hostfs.Shortage(needs(plan.Changes, plan.Download, archives, now), s.space)
}
