package apt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/begun"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Upgrade implements strategy.Strategy: it installs the versions of the plan, and
// nothing else, from the archives that prepare has fetched.
func (s *Strategy) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	var outcome strategy.Outcome
	call, err := s.call(job)
	if err == nil {
		outcome, err = call.upgrade(ctx, job.Plan)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot upgrade: %w", err)
	}
	return outcome, nil
}

func (s *call) upgrade(ctx context.Context, plan message.ChangeSet) (strategy.Outcome, error) {
	found, err := s.atRest(ctx, plan.Changes)
	if err != nil {
		return 0, err
	}
	if found.interrupted || len(found.reinstall) > 0 {
		// apt would refuse everything, and name only half of the remedy.
		return 0, found.leftByOthers("interrupted after this host was prepared")
	}
	if found.missing {
		if err := s.switchRelease(); err != nil {
			return 0, err
		}
		err := s.checkArchives(ctx, plan.Changes)
		if err == nil {
			err = s.beginAutomatic()
		}
		if err == nil {
			err = begun.Write(s.StateDir, plan.Changes)
		}
		if err == nil {
			err = s.carryOut(ctx, plan.Changes, true)
		}
		if err != nil {
			return 0, errors.Join(err, s.undoRelease(ctx, plan.Changes))
		}
	}
	return s.finish(ctx, plan)
}

// carryOut installs the versions of a plan. It refuses when apt would change
// anything else, for the host may have changed since it was prepared.
func (s *call) carryOut(ctx context.Context, changes []message.Change, offline bool) error {
	args, err := s.withArchives(ctx, install(changes), changes)
	if err != nil {
		return err
	}
	would, err := s.simulate(ctx, args...)
	if err != nil {
		return err
	}
	if err := beyond(changes, would); err != nil {
		return strategy.Fail(message.Install, err)
	}
	if offline {
		args = append([]string{"--no-download"}, args...)
	}
	return s.apt(ctx, span{0, 95}, args...)
}

// withArchives replaces, among the arguments of apt-get, each version of some changes that prepare has
// fetched and that the lists do not have any more by its archive: a timer may have fetched
// newer lists since. Its sum is known, so it is what the repository had.
func (s *call) withArchives(ctx context.Context, args []string, changes []message.Change) ([]string, error) {
	known, err := s.keptSums()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range changes {
		if c.To != "" {
			names = append(names, c.Name)
		}
	}
	offers, err := s.offers(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		word := target{c.Name, c.To}.argument()
		at, file := slices.Index(args, word), s.archiveOf(c)
		if at >= 0 && c.To != "" && !offers[c.Name].has(c.To) && known[word] != "" && file != "" {
			args[at] = file
		}
	}
	return args, nil
}

// finish proves that the plan is carried out and says whether it takes a reboot.
func (s *call) finish(ctx context.Context, plan message.ChangeSet) (strategy.Outcome, error) {
	if err := s.restoreAutomatic(ctx, plan.Changes); err != nil {
		return 0, err
	}
	now, err := s.packages(ctx)
	if err != nil {
		return 0, err
	}
	if missing := now.missing(plan.Changes); len(missing) > 0 {
		return 0, strategy.Fail(message.Install, fmt.Errorf("apt has ended well, and %s missing of the plan: %s; see: dpkg -l",
			text.Count(len(missing), "change is", "changes are"), few(message.ChangeTexts(missing))))
	}
	if err := s.tellConffiles(ctx, plan.Changes); err != nil {
		return 0, err
	}
	if unfinished, reinstall := now.broken(); len(unfinished) == 0 && len(reinstall) == 0 {
		if err := begun.Clear(s.StateDir); err != nil {
			return 0, err
		}
	}
	if err := s.toDisk(ctx); err != nil {
		return 0, err
	}
	why, err := s.rebootReason(now)
	if err != nil || why == "" {
		return strategy.Done, err
	}
	s.progress(100, "a reboot is required: "+why)
	return strategy.RebootRequired, nil
}

// Resume implements strategy.Strategy. It waits for an apt-get or dpkg that has
// outlived the agent: both hold their locks until they end.
func (s *Strategy) Resume(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	var outcome strategy.Outcome
	call, err := s.call(job)
	if err == nil {
		call.until = time.Time{}
		outcome, err = call.resume(ctx, job.Plan)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot finish the interrupted upgrade: %w", err)
	}
	return outcome, nil
}

func (s *call) resume(ctx context.Context, plan message.ChangeSet) (strategy.Outcome, error) {
	if err := s.awaitLocks(ctx); err != nil {
		return 0, err
	}
	now, err := s.packages(ctx)
	if err != nil {
		return 0, err
	}
	found, err := s.condition(ctx, plan.Changes)
	if err != nil {
		return 0, err
	}
	if found.missing && !found.interrupted && now.untouched(plan.Changes) {
		return strategy.NotDone, nil
	}
	if found.missing {
		if err := s.switchRelease(); err != nil {
			return 0, err
		}
	}
	known, err := s.keptSums()
	if err != nil {
		return 0, err
	}
	// The repairs fetch again what they need of it.
	if _, err := s.dropDamaged(plan.Changes, known); err != nil {
		return 0, err
	}
	if err := s.repair(ctx, plan.Changes); err != nil {
		return 0, err
	}
	if err := s.proveContents(ctx, plan.Changes); err != nil {
		return 0, err
	}
	return s.finish(ctx, plan)
}

// atRest waits until nobody holds a lock, and returns the condition of the host. A dpkg that
// somebody starts between the two looks like one that was killed, so a host that is not whole is
// looked at again, until nobody holds a lock after that either.
func (s *call) atRest(ctx context.Context, changes []message.Change) (condition, error) {
	for again := false; ; again = true {
		if err := s.awaitLocks(ctx); err != nil {
			return condition{}, err
		}
		found, err := s.condition(ctx, changes)
		if err != nil || found.whole() {
			return found, err
		}
		who, err := s.locked()
		if err != nil || who == "" && again {
			return found, err
		}
	}
}

// condition looks at the host for what nextRepair goes by.
func (s *call) condition(ctx context.Context, changes []message.Change) (condition, error) {
	now, err := s.packages(ctx)
	if err != nil {
		return condition{}, err
	}
	updates, err := s.host.Names("/var/lib/dpkg/updates")
	if err != nil {
		return condition{}, err
	}
	found := condition{missing: len(now.missing(changes)) > 0}
	// dpkg keeps its changes in numbered files there until it merges them.
	found.interrupted = slices.ContainsFunc(updates, func(name string) bool { return strings.Trim(name, "0123456789") == "" })
	found.unfinished, found.reinstall = now.broken()
	found.gone, err = s.gone(ctx, found.reinstall)
	return found, err
}

// gone returns the packages of which no repository has a version; none if the host has no lists.
func (s *call) gone(ctx context.Context, names []string) (gone []string, err error) {
	if len(names) == 0 || s.listed(ctx) != nil {
		return nil, ctx.Err()
	}
	offers, err := s.offers(ctx, names)
	if err != nil {
		return nil, ctx.Err() // The repairs need no answer.
	}
	for _, name := range names {
		if !slices.ContainsFunc(offers[name].versions, offer.fetched) {
			gone = append(gone, name)
		}
	}
	return gone, nil
}

// repair runs the commands of nextRepair until there is none.
func (s *call) repair(ctx context.Context, changes []message.Change) error {
	var tried []attempt
	var failed []error
	for {
		found, err := s.condition(ctx, changes)
		if err != nil {
			return err
		}
		next, ok := nextRepair(found, tried)
		if !ok {
			return unrepaired(found, failed)
		}
		s.progress(-1, "repairing: "+string(next))
		err = s.try(ctx, next, found, changes)
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			failed = append(failed, err)
			s.progress(-1, message.CleanText("repair "+string(next)+" failed: "+err.Error()))
		}
		tried = append(tried, attempt{next, err == nil})
	}
}

// unrepaired says what is left when nothing more can be tried. It passes if one of the
// failures does: without a repository nothing else can be repaired that lacks an archive.
func unrepaired(found condition, failed []error) error {
	left := slices.Concat(found.reinstall, found.unfinished)
	if len(left) == 0 && !found.missing && !found.interrupted {
		return nil
	}
	class, said := message.Install, []string{"every repair ended well"}
	if len(failed) > 0 {
		last := failed[len(failed)-1]
		class, said = strategy.ClassOf(last), []string{program.Said(last)}
	}
	for _, err := range failed {
		if passing := strategy.ClassOf(err); passing.Passes() && !class.Passes() {
			class, said = passing, append(said, err.Error())
		}
	}
	what := "the plan is not carried out after all repairs"
	if len(left) > 0 || found.interrupted {
		what = fmt.Sprintf("dpkg has not finished with %s after all repairs; %s", found.what(), found.remedy())
	}
	return strategy.Fail(class, fmt.Errorf("%s; the last repair said: %s", what, strings.Join(said, "; and before: ")))
}

// try makes one repair.
func (s *call) try(ctx context.Context, what repair, found condition, changes []message.Change) error {
	switch what {
	case repairConfigure:
		return s.dpkg(ctx, "--configure", "-a")
	case repairReinstall:
		return s.reinstall(ctx, found.reinstall, changes)
	case repairUpdate:
		return s.update(ctx)
	case repairFix:
		return s.sparing(ctx, changes, "-f", "install")
	default:
		return s.carryOut(ctx, changes, false)
	}
}

// reinstall unpacks packages once more.
func (s *call) reinstall(ctx context.Context, names []string, changes []message.Change) error {
	now, err := s.packages(ctx)
	if err != nil {
		return err
	}
	listed := again(names, changes, now)
	args, err := s.withArchives(ctx, slices.Clone(listed), changes)
	if err != nil {
		return err
	}
	command := []string{"--reinstall", "--allow-downgrades"}
	if !slices.Equal(args, listed) {
		// With archives apt does not see that they meet what is unmet, unless it is to repair that.
		return s.sparing(ctx, changes, slices.Concat(command, []string{"-f", "install"}, args)...)
	}
	return s.apt(ctx, span{0, 95}, slices.Concat(command, []string{"install"}, args)...)
}

// again returns the arguments that unpack packages once more, in the planned version or
// in the one that dpkg has recorded, together with what is missing of the plan: alone,
// apt refuses a package whose dependencies wait to be upgraded, too.
func again(names []string, changes []message.Change, now packages) []string {
	missing := slices.DeleteFunc(now.missing(changes), func(c message.Change) bool {
		// What is unpacked has no archive any more, and needs to be configured alone.
		return c.To != "" && now[c.Name].version == c.To && !now[c.Name].reinstall
	})
	args := installArguments(missing)
	for _, name := range names {
		planned := slices.ContainsFunc(missing, func(c message.Change) bool { return c.Name == name })
		if !planned {
			args = append(args, target{name, now[name].version}.argument())
		}
	}
	return args
}

// sparing runs an apt-get -f, which completes what can be completed. It must not remove what the
// plan keeps.
func (s *call) sparing(ctx context.Context, changes []message.Change, command ...string) error {
	would, err := s.simulate(ctx, command...)
	if err != nil {
		return err
	}
	for _, name := range would.removed() {
		planned := slices.ContainsFunc(changes, func(c message.Change) bool { return c.Name == name && c.To == "" })
		if !planned {
			return strategy.Fail(message.Install, fmt.Errorf("apt-get -f install would remove %s, which the plan keeps", few(would.removed())))
		}
	}
	return s.apt(ctx, span{0, 95}, command...)
}

// Verify implements strategy.Strategy.
func (s *Strategy) Verify(ctx context.Context, job strategy.Job) error {
	call, err := s.call(job)
	if err == nil {
		err = call.verify(ctx, job.Plan)
	}
	if err != nil {
		return fmt.Errorf("the upgraded host is not well: %w", err)
	}
	return nil
}

func (s *call) verify(ctx context.Context, plan message.ChangeSet) error {
	audit, err := s.read(ctx, "dpkg", "--audit")
	if err != nil {
		return strategy.Fail(message.Verify, err)
	}
	if audit = strings.TrimSpace(audit); audit != "" {
		return strategy.Fail(message.Verify, fmt.Errorf("dpkg --audit: %s", text.Fit(message.CleanText(strings.Join(strings.Fields(audit), " ")), program.MaxSaid, "...")))
	}
	if _, err := s.read(ctx, "apt-get", "-q", "check"); err != nil {
		return strategy.Fail(message.Verify, err)
	}
	return s.verifyKernel(plan)
}
