package apt

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/begun"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Rollback implements strategy.Strategy: it installs the versions of before, when
// the repositories or the archives still have all of them. What somebody else has changed
// since the host was prepared stays.
func (s *Strategy) Rollback(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	var outcome strategy.Outcome
	call, err := s.call(job)
	if err == nil {
		outcome, err = call.rollback(ctx, job.Plan.Changes)
	}
	if err != nil {
		err = fmt.Errorf("cannot go back: %w", err)
		job.Progress(-1, message.CleanText(err.Error())) // ErrNoRollback has no text for the worker.
		return 0, err
	}
	return outcome, nil
}

func (s *call) rollback(ctx context.Context, plan []message.Change) (strategy.Outcome, error) {
	if err := s.awaitLocks(ctx); err != nil {
		return 0, err
	}
	s.goesBack = true
	again := len(begun.Read(s.StateDir)) > 0
	now, err := s.packages(ctx)
	if err != nil {
		return 0, err
	}
	undo := strategy.UndoOf(plan, now.missing)
	if len(undo.Back) > 0 && s.what.Distribution != "" {
		return 0, fmt.Errorf("%w: nothing leads back to the release before; %s", strategy.ErrNoRollback, remedy.AptRelease)
	}
	if len(undo.Back) > 0 {
		if err := s.goBack(ctx, undo, now); err != nil {
			return 0, err
		}
	}
	if again {
		// An upgrade, or a way back, was interrupted perhaps.
		was := strategy.Reversed(undo.Own(plan))
		if err := s.repair(ctx, was); err != nil {
			return 0, err
		}
		if err := s.proveContents(ctx, was); err != nil {
			return 0, err
		}
	}
	return s.finish(ctx, message.ChangeSet{Changes: undo.Back})
}

func (s *call) goBack(ctx context.Context, undo strategy.Undo, now packages) error {
	known, err := s.keptSums()
	if err != nil {
		return err
	}
	if _, err := s.dropDamaged(undo.Back, known); err != nil {
		return err
	}
	args, lost, err := s.archivesOf(ctx, now.toUnpack(undo.Back))
	if err != nil {
		return err
	}
	found, err := s.condition(ctx, undo.Back)
	if err != nil {
		return err
	}
	command := slices.Concat(found.reinstallOptions(), backCommand(args))
	if len(lost) > 0 {
		by := "apt-get " + strings.Join(command, " ")
		if found.interrupted {
			by = "dpkg --configure -a; " + by
		}
		return fmt.Errorf("%w to the versions of before: neither a repository of this host nor %s has %s; %s",
			strategy.ErrNoRollback, archivesFolder, few(lost), remedy.AptOldVersions.With(by))
	}
	if found.interrupted {
		// It has dpkg merge what it has left of its database, and runs no script: that of
		// the package which the upgrade broke may hang again, and is replaced next.
		if err := s.dpkg(ctx, "--set-selections"); err != nil {
			return err
		}
	}
	would, err := s.simulate(ctx, command...)
	if err != nil {
		return err
	}
	if err := onlyUndoes(undo, would, command); err != nil {
		return err
	}
	if len(begun.Read(s.StateDir)) == 0 { // A run that is over is rolled back: what breaks off, the next run may repair.
		if err := begun.Write(s.StateDir, strategy.Reversed(undo.Back)); err != nil {
			return err
		}
	}
	return s.apt(ctx, span{0, 95}, command...)
}

// backCommand is the command of apt-get that goes back to the versions in its arguments.
func backCommand(args []string) []string {
	return append([]string{"--allow-downgrades", "-f", "install"}, args...)
}

// onlyUndoes returns an error if the way back would change what is not to be undone.
func onlyUndoes(undo strategy.Undo, would simulation, command []string) error {
	more := undoesOthers(undo, would)
	if len(more) == 0 {
		return nil
	}
	return strategy.Fail(message.Install, fmt.Errorf("apt would also change what this upgrade did not change: %s; %s",
		few(more), remedy.AptOthers.With(strings.Join(command, " "))))
}

// reinstallOptions let apt replace packages that were cut off while they were unpacked:
// otherwise it refuses everything, because it finds no archive of the version that dpkg has
// recorded.
func (c condition) reinstallOptions() []string {
	if len(c.reinstall) == 0 {
		return nil
	}
	return []string{"--reinstall"}
}

// undoesOthers returns what a rollback would change of what somebody else has changed, or
// remove of what the upgrade has not installed.
func undoesOthers(undo strategy.Undo, would simulation) (more []string) {
	for _, c := range would.changes {
		named := func(of message.Change) bool { return of.Name == c.Name }
		if slices.ContainsFunc(undo.Left, named) || c.To == "" && !slices.ContainsFunc(undo.Back, named) {
			more = append(more, c.String())
		}
	}
	return more
}

// archivesOf returns the arguments that install the versions of some changes: a
// version that a repository has, or else its archive; lost are those that neither has, with
// the names that their archives would have among the arguments.
func (s *call) archivesOf(ctx context.Context, changes []message.Change) (args, lost []string, err error) {
	var names []string
	for _, c := range changes {
		if c.To != "" {
			names = append(names, c.Name)
		}
	}
	offers, err := s.offers(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range changes {
		switch archive := s.archiveOf(c); {
		case c.To == "":
			args = append(args, c.Name+"-")
		case offers[c.Name].has(c.To):
			args = append(args, c.Name+"="+c.To)
		case archive != "":
			args = append(args, archive)
		default:
			lost = append(lost, c.Name+" "+c.To)
			args = append(args, s.archivesLike(c))
		}
	}
	return args, lost, nil
}

// has reports whether a repository has a version.
func (o available) has(version string) bool {
	return slices.ContainsFunc(o.versions, func(v offer) bool {
		return v.version == version && v.fetched()
	})
}

// fetched reports whether a repository has the version; that it is installed does not count.
func (v offer) fetched() bool {
	return slices.ContainsFunc(v.sources, func(source string) bool { return source != "/var/lib/dpkg/status" })
}

// archiveOf returns the archive of a version among those that apt has kept; empty if
// there is none. A host may have a package of two architectures, and the archives of both. An empty
// file is no archive: a power cut may leave it of one that apt was fetching.
func (s *Strategy) archiveOf(c message.Change) string {
	found, err := filepath.Glob(s.archivesLike(c))
	found = slices.DeleteFunc(found, isEmpty)
	if !strings.Contains(c.Name, ":") {
		found = slices.DeleteFunc(found, s.isForeign)
	}
	if err != nil || len(found) != 1 {
		return ""
	}
	return found[0]
}

// isForeign reports whether an archive is of a foreign architecture. dpkg lists these after that of the
// host.
func (s *Strategy) isForeign(archive string) bool {
	all, err := s.host.Read("/var/lib/dpkg/arch")
	architectures := strings.Fields(all)
	return err == nil && len(architectures) > 1 && slices.ContainsFunc(architectures[1:], func(foreign string) bool {
		return strings.HasSuffix(archive, "_"+foreign+".deb")
	})
}

// archivesLike is the pattern of the files that archiveOf looks for.
func (s *Strategy) archivesLike(c message.Change) string {
	name, architecture, _ := strings.Cut(c.Name, ":")
	return s.host.Path(filepath.Join(archivesFolder, name+"_"+strings.ReplaceAll(c.To, ":", "%3a")+"_"+cmp.Or(architecture, "*")+".deb"))
}
