package dnf

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/osinfo"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/begun"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/hostfs"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Plan implements strategy.Strategy: it goes by the metadata that the host has. There is no
// plan while somebody else changes the host: dnf5 would wait for the end of it, without a
// limit, and an action of a run for this plan. It is asked for again when packages have changed.
func (s *Strategy) Plan(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	who, err := s.locked()
	if err == nil && who != "" {
		err = fmt.Errorf("%w now: %s", strategy.ErrNoPlan, who)
	}
	var call *call
	if err == nil {
		call, err = s.call(ctx, job)
	}
	var plan message.ChangeSet
	switch {
	case err != nil:
	case job.Fetch:
		err = call.refresh(ctx)
	case !call.what.AsOf.IsZero() && !s.host.Exists(call.pastCache()):
		err = fmt.Errorf("the metadata as of %s is fetched when the host is prepared: %w", call.what.AsOf.UTC().Format(time.RFC3339), strategy.ErrNoPlan)
	}
	if err == nil {
		plan, err = call.plan(ctx, job)
	}
	if err != nil {
		return message.ChangeSet{}, fmt.Errorf("cannot plan the upgrade: %w", err)
	}
	return plan, nil
}

// Prepare implements strategy.Strategy.
func (s *Strategy) Prepare(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	return strategy.PrepareBy(ctx, job, "upgrade", func() (*call, error) { return s.call(ctx, job) }, (*call).prepare)
}

// refresh fetches the metadata of the repositories.
func (s *call) refresh(ctx context.Context) error {
	if !s.what.AsOf.IsZero() {
		if err := s.forget(); err != nil {
			return err
		}
	}
	return s.dnf(ctx, "makecache", "--refresh", "makecache")
}

func (s *call) prepare(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	if err := s.awaitLocks(ctx); err != nil {
		return message.ChangeSet{}, err
	}
	s.progress(0, "refreshing the repositories")
	if err := s.refresh(ctx); err != nil {
		return message.ChangeSet{}, err
	}
	if err := s.sound(ctx); err != nil {
		return message.ChangeSet{}, err
	}
	plan, err := s.plan(ctx, job)
	if err != nil {
		return message.ChangeSet{}, err
	}
	s.progress(20, "the plan has "+text.Count(len(plan.Changes), "change", "changes"))
	if len(plan.Changes) > 0 {
		if err := s.download(ctx, plan); err != nil {
			return message.ChangeSet{}, err
		}
	}
	return plan, s.toDisk(ctx)
}

// sound checks that no package has two versions that must not be beside each other. What an
// own run has left is repaired; to repair what others have left could change what runs, which
// prepare must not.
func (s *call) sound(ctx context.Context) error {
	names, err := s.duplicates(ctx)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return begun.Clear(s.StateDir) // A person may have repaired the host: it stays as it is.
	}
	if left := begun.Read(s.StateDir); begun.Covers(left, names) {
		return strategy.Mend(ctx, left, begun.Of(left, names), s.mending())
	}
	return strategy.Fail(message.Install, fmt.Errorf("%s has two versions, from a transaction that was interrupted before this run; %s",
		few(names), remedy.DNFDuplicates.With(s.command)))
}

// duplicates returns the packages with two versions that must not be beside each other.
func (s *call) duplicates(ctx context.Context) ([]string, error) {
	return s.keys(ctx, "--duplicates")
}

// keys asks dnf for packages, each once.
func (s *call) keys(ctx context.Context, args ...string) (keys []string, err error) {
	rows, err := s.query(ctx, []string{"%{name}.%{arch}"}, args...)
	for _, row := range rows {
		keys = append(keys, row[0])
	}
	slices.Sort(keys)
	return slices.Compact(keys), err
}

// mending is what strategy.Mend calls.
func (s *call) mending() strategy.Mending {
	return strategy.Mending{
		Progress: s.progress, Missing: s.Missing,
		Undo: func(ctx context.Context, changes []message.Change) error {
			_, err := s.rollback(ctx, changes)
			return err
		},
		Do: func(ctx context.Context, changes []message.Change) error {
			return s.repair(ctx, message.ChangeSet{Changes: changes})
		},
	}
}

// plan returns what an upgrade changes by the metadata that is there.
func (s *call) plan(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	now, taken, err := s.installed(ctx)
	if err != nil {
		return message.ChangeSet{}, err
	}
	facts := heldBack{now: now, rejected: job.Rejected, what: s.what}
	for _, ask := range []struct {
		into *available
		args []string
	}{
		{&facts.offered, nil},
		{&facts.unlocked, s.unlocked},
		{&facts.all, s.everything},
	} {
		if *ask.into, err = s.offers(ctx, ask.args...); err != nil {
			return message.ChangeSet{}, err
		}
	}
	if s.versionlocks != nil {
		printed, err := s.readDNF(ctx, s.versionlocks...)
		if err != nil {
			return message.ChangeSet{}, err
		}
		facts.lock(parseVersionlocks(printed))
	}
	would, err := s.choose(ctx, facts)
	if err != nil {
		return message.ChangeSet{}, err
	}
	facts.changes, facts.skipped = changes(would, now), would.skipped
	for _, c := range facts.changes {
		if name, _ := splitKey(c.Name); strategy.Matches(s.what.Except, name) {
			return message.ChangeSet{}, strategy.Fail(message.Install, fmt.Errorf("%s would be changed, which the release excepts", c.Name))
		}
	}
	system, err := osinfo.Read(string(s.host))
	if err == nil {
		err = job.Reaches(now.after(facts.changes), system)
	}
	if err != nil {
		return message.ChangeSet{}, err
	}
	plan := message.ChangeSet{Changes: facts.changes, Held: facts.list()}
	if s.what.Select == release.Listed {
		plan.Held = slices.DeleteFunc(plan.Held, func(h message.HeldPackage) bool { return !s.names(h.Name) })
	}
	plan = plan.Sorted()
	archives, err := s.archives(ctx, plan.Changes)
	if err != nil {
		return message.ChangeSet{}, err
	}
	for _, archive := range archives {
		plan.Download += archive.download
	}
	if err := hostfs.Shortage(s.needs(plan, archives, taken), s.space); err != nil {
		return message.ChangeSet{}, err
	}
	if plan.Reboot, err = s.willReboot(ctx, plan); err != nil {
		return message.ChangeSet{}, err
	}
	return plan, plan.Check()
}

// offers asks dnf for the newest versions of installed packages.
func (s *call) offers(ctx context.Context, args ...string) (available, error) {
	rows, err := s.query(ctx, []string{"%{name}.%{arch}", "%{epoch}", "%{version}", "%{release}"}, slices.Concat(args, []string{"--upgrades", "--latest-limit=1"})...)
	if err != nil {
		return nil, err
	}
	all := available{}
	for _, row := range rows {
		if all[row[0]], err = evr(row[1], row[2], row[3]); err != nil {
			return nil, fmt.Errorf("dnf repoquery: %w", err)
		}
	}
	return all, nil
}

// choose asks dnf what it would do of what is selected, without the versions that were rolled back.
func (s *call) choose(ctx context.Context, facts heldBack) (resolved, error) {
	var args []string
	for _, key := range slices.Sorted(maps.Keys(facts.rejected)) {
		for _, version := range facts.rejected[key] {
			args = append(args, "--exclude="+nevra(key, version))
		}
	}
	for _, pattern := range s.what.Except {
		args = append(args, "--exclude="+pattern)
	}
	if s.what.Select == release.Listed {
		targets, err := targets(s.what, facts)
		if err != nil || len(targets) == 0 {
			return resolved{}, err
		}
		return s.resolve(ctx, slices.Concat([]string{"install"}, args, targets)...)
	}
	command, upgradable := []string{"upgrade", s.nobest}, slices.Collect(maps.Keys(facts.offered))
	if s.what.Select == release.Security {
		command = []string{"upgrade", "--security", s.nobest}
	}
	if len(s.what.Only) == 0 {
		return s.resolve(ctx, slices.Concat(command, args)...)
	}
	if s.what.Select == release.Security {
		// dnf5 refuses to be told of a package without a security update.
		var err error
		if upgradable, err = s.keys(ctx, "--upgrades", "--security"); err != nil {
			return resolved{}, err
		}
	}
	only := named(s.what, upgradable)
	if len(only) == 0 {
		return resolved{}, nil
	}
	return s.resolve(ctx, slices.Concat(command, args, only)...)
}

// named returns those of some packages that a release names.
func named(what release.Packages, keys []string) (only []string) {
	for _, key := range keys {
		if name, _ := splitKey(key); strategy.LeftOut(what, name) == "" {
			only = append(only, key)
		}
	}
	slices.Sort(only)
	return slices.Compact(only)
}

// names reports whether the list of packages names one.
func (s *call) names(key string) bool {
	name, _ := splitKey(key)
	return slices.ContainsFunc(s.what.Listed(), func(word string) bool {
		bare, _, _ := strings.Cut(word, "=")
		return strategy.Matches([]string{bare}, name)
	})
}

// targets returns what dnf install is told for the words of a list. A pattern that
// matches nothing is an error: it would upgrade nothing for ever.
func targets(what release.Packages, facts heldBack) (list []string, err error) {
	for _, word := range what.Only {
		name, version, exact := strings.Cut(word, "=")
		if exact {
			list = append(list, name+"-"+version)
			continue
		}
		found := false
		for _, key := range slices.Sorted(maps.Keys(facts.now)) {
			if installed, _ := splitKey(key); !strategy.Matches([]string{name}, installed) {
				continue
			}
			found = true
			bare, _ := splitKey(key)
			if offered := facts.offered[key]; offered != "" && !facts.rejected.Has(key, offered) && strategy.LeftOut(what, bare) == "" {
				list = append(list, nevra(key, offered))
			}
		}
		if !found {
			return nil, strategy.Fail(message.Install, fmt.Errorf("%s: %s is not installed; %s", listed, name, remedy.DNFNotThere.With(name)))
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// archive is what a repository says about one version of a package, in bytes.
type archive struct{ download, unpacked int64 }

// archives asks dnf for the sizes of planned versions, by NEVRA.
func (s *call) archives(ctx context.Context, changes []message.Change) (map[string]archive, error) {
	all := map[string]archive{}
	args := slices.Clone(s.unlocked)
	for _, c := range changes {
		if c.To != "" {
			args = append(args, nevra(c.Name, c.To))
		}
	}
	if len(args) == len(s.unlocked) {
		return all, nil
	}
	rows, err := s.query(ctx, []string{"%{name}.%{arch}", "%{epoch}", "%{version}", "%{release}", "%{downloadsize}", "%{installsize}"}, args...)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		version, bad := evr(row[1], row[2], row[3])
		download, badDownload := strconv.ParseInt(row[4], 10, 62)
		unpacked, badUnpacked := strconv.ParseInt(row[5], 10, 62)
		if err := errors.Join(bad, badDownload, badUnpacked); err != nil {
			return nil, fmt.Errorf("dnf repoquery printed %.200q: %w", strings.Join(row, " "), err)
		}
		all[nevra(row[0], version)] = archive{max(download, 0), max(unpacked, download, 0)}
	}
	return all, nil
}

const (
	// spare is kept free for databases, logs and what scripts write.
	spare = 32 << 20
	// bootRoom is what one more kernel takes in /boot at least, with its initrd.
	bootRoom = 96 << 20
)

// needs returns the room that a plan takes: for the download, for what the new versions
// take more than the old ones, for the largest package, whose old and new files are
// there at once, and in /boot for each new kernel.
func (g *generation) needs(plan message.ChangeSet, archives map[string]archive, taken sizes) []hostfs.Need {
	if len(plan.Changes) == 0 {
		return nil
	}
	more, largest, kernels := int64(0), int64(0), int64(0)
	for _, c := range plan.Changes {
		unpacked := archives[nevra(c.Name, c.To)].unpacked
		more += unpacked
		if c.From != "" {
			more -= taken[c.Name]
		}
		largest = max(largest, unpacked)
		if isKernel(c.Name) && c.To != "" {
			kernels++
		}
	}
	list := []hostfs.Need{{Folder: g.cache, Bytes: plan.Download}, {Folder: "/usr", Bytes: max(more, 0) + largest + spare}}
	if kernels > 0 {
		list = append(list, hostfs.Need{Folder: "/boot", Bytes: kernels * bootRoom})
	}
	return list
}

// download fetches a plan and checks its signatures.
func (s *call) download(ctx context.Context, plan message.ChangeSet) error {
	now, err := s.database(ctx)
	if err != nil {
		return err
	}
	reason, err := s.reasons(ctx, plan.Changes, s.wanted)
	if err != nil {
		return err
	}
	s.progress(30, "downloading")
	return s.carry(ctx, replay(plan.Changes, now, false, reason), s.fetch)
}
