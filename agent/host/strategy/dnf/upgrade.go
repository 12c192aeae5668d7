package dnf

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/begun"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Upgrade implements strategy.Strategy: dnf replays the transaction of the plan from what
// prepare has fetched. dnf refuses when that would change anything else.
func (s *Strategy) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	var outcome strategy.Outcome
	call, err := s.call(ctx, job)
	if err == nil {
		outcome, err = call.upgrade(ctx, job.Plan)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot upgrade: %w", err)
	}
	return outcome, nil
}

func (s *call) upgrade(ctx context.Context, plan message.ChangeSet) (strategy.Outcome, error) {
	if err := s.awaitLocks(ctx); err != nil {
		return 0, err
	}
	if err := begun.Write(s.StateDir, plan.Changes); err != nil {
		return 0, err
	}
	err := s.carryOut(ctx, plan.Changes, false, s.wanted, offline)
	if strategy.ClassOf(err) == message.Artifact {
		// dnf compares the sums before it changes anything.
		s.progress(-1, message.CleanText("fetching again what is damaged or lost: "+err.Error()))
		if err = s.download(ctx, plan); err == nil {
			err = s.carryOut(ctx, plan.Changes, false, s.wanted, offline)
		}
	}
	if err != nil {
		return 0, err
	}
	return s.finish(ctx, plan)
}

// carryOut brings the host from what it has now to some changes.
func (s *call) carryOut(ctx context.Context, changes []message.Change, again bool, otherwise func(string) string, args ...string) error {
	now, err := s.database(ctx)
	if err != nil {
		return err
	}
	reason, err := s.reasons(ctx, changes, otherwise)
	if err != nil {
		return err
	}
	return s.carry(ctx, replay(changes, now, again, reason), args...)
}

// finish proves that the plan is carried out and says whether it takes a reboot.
func (s *call) finish(ctx context.Context, plan message.ChangeSet) (strategy.Outcome, error) {
	now, err := s.database(ctx)
	if err != nil {
		return 0, err
	}
	if missing := now.missing(plan.Changes); len(missing) > 0 {
		return 0, strategy.Fail(message.Install, fmt.Errorf("%s of the plan not there though dnf has ended: %s; see: %s history info last",
			text.Count(len(missing), "change is", "changes are"), few(message.ChangeTexts(missing)), s.command))
	}
	if err := s.consistent(ctx, plan.Changes); err != nil {
		return 0, strategy.Fail(message.Install, err)
	}
	if err := begun.Clear(s.StateDir); err != nil {
		return 0, err
	}
	if err := s.toDisk(ctx); err != nil {
		return 0, err
	}
	why, err := s.rebootReason(ctx, plan)
	if err != nil || why == "" {
		return strategy.Done, err
	}
	s.progress(100, "a reboot is required: "+why)
	return strategy.RebootRequired, nil
}

// consistent has dnf check the packages of a plan. A problem that the host had before
// with another package fails no upgrade.
func (s *call) consistent(ctx context.Context, changes []message.Change) error {
	c := program.Command{Name: s.command, Args: slices.Concat(s.options, []string{"--quiet", offline, "check", "--dependencies", "--duplicates"}), Quiet: true}
	ended, err := s.run(ctx, c)
	if err != nil || ended.Exit == 0 {
		return err
	}
	problems, other := aboutPlan(s.problems(ended.Stdout), changes)
	switch {
	case len(problems) > 0:
		return fmt.Errorf("dnf check: %s", text.Fit(few(problems), program.MaxSaid, "..."))
	case len(other) == 0:
		return s.failure(s.command+" check", ended)
	}
	s.progress(-1, message.CleanText("dnf check has problems with packages that this run did not change: "+few(other)))
	return nil
}

// aboutPlan returns the problems with planned packages, and with others.
func aboutPlan(problems []problem, changes []message.Change) (planned, other []string) {
	about := map[string]bool{}
	for _, c := range changes {
		for _, version := range []string{c.From, c.To} {
			if version != "" {
				about[nevra(c.Name, version)] = true
			}
		}
	}
	for _, p := range problems {
		if slices.ContainsFunc(p.packages, func(one string) bool { return about[one] }) {
			planned = append(planned, message.CleanText(p.text))
		} else {
			other = append(other, message.CleanText(p.text))
		}
	}
	return planned, other
}

// Resume implements strategy.Strategy. It waits for a dnf that has outlived the agent: it
// holds its locks until it ends.
func (s *Strategy) Resume(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	var outcome strategy.Outcome
	call, err := s.call(ctx, job)
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
	now, err := s.database(ctx)
	if err != nil && ctx.Err() == nil {
		// A database that nobody can read is all that this repairs; otherwise it is a risk.
		s.progress(-1, "repairing: rpm --rebuilddb")
		if _, err := s.read(ctx, "rpm", "--rebuilddb"); err != nil {
			return 0, err
		}
		now, err = s.database(ctx)
	}
	if err != nil {
		return 0, err
	}
	if len(plan.Changes) == 0 {
		return s.finish(ctx, plan)
	}
	if now.untouched(plan.Changes) {
		return strategy.NotDone, nil
	}
	cut, err := s.interrupted(ctx)
	if err != nil {
		return 0, err
	}
	unlike, err := s.unlike(ctx, plan.Changes, now)
	if err != nil {
		return 0, err
	}
	if cut || unlike || len(now.missing(plan.Changes)) > 0 {
		if err := s.repair(ctx, plan); err != nil {
			return 0, err
		}
	}
	return s.finish(ctx, plan)
}

// interrupted reports whether the last transaction of dnf has no end: it was killed,
// perhaps in a script of a package that is installed.
func (s *call) interrupted(ctx context.Context) (bool, error) {
	printed, err := s.readDNF(ctx, "history", "info", "last")
	if err != nil {
		return false, err
	}
	return s.cut(printed), nil
}

// repair removes old versions beside new ones, installs again what is there, and
// carries out the rest of the plan: in one transaction, from what was fetched. Where
// that was lost, with the power perhaps, it is fetched once more.
func (s *call) repair(ctx context.Context, plan message.ChangeSet) error {
	s.progress(-1, "repairing: removing old versions beside new ones, and installing what is planned")
	err := s.carryOut(ctx, plan.Changes, true, s.wanted, offline)
	if err == nil || ctx.Err() != nil {
		return err
	}
	s.progress(-1, message.CleanText("repair failed: "+err.Error()))
	s.progress(-1, "repairing: fetching the packages once more")
	if err := s.dnf(ctx, "makecache", "--refresh", "makecache"); err != nil {
		return err
	}
	if err = s.carryOut(ctx, plan.Changes, true, s.wanted); err == nil || ctx.Err() != nil || strategy.ClassOf(err).Passes() {
		return err
	}
	return s.stuck(ctx, err)
}

// stuck returns the error of a repair that nothing but other packages in the repositories would
// have helped. To install again what is there needs its packages; to remove the old versions does not, but
// the scripts of the new ones may not have run, so a person decides on it.
func (s *call) stuck(ctx context.Context, err error) error {
	double, queryErr := s.duplicates(ctx)
	if queryErr != nil || len(double) == 0 {
		return err
	}
	return strategy.Fail(strategy.ClassOf(err), fmt.Errorf("%s has two versions, and cannot be installed again: %s; %s",
		few(double), program.Said(err), remedy.DNFDuplicates.With(s.command)))
}

// Verify implements strategy.Strategy.
func (s *Strategy) Verify(ctx context.Context, job strategy.Job) error {
	call, err := s.call(ctx, job)
	if err == nil {
		err = call.consistent(ctx, job.Plan.Changes)
	}
	if err == nil {
		err = call.verifyKernel(job.Plan)
	}
	if err == nil {
		return nil
	}
	if strategy.ClassOf(err) == "" {
		err = strategy.Fail(message.Verify, err)
	}
	return fmt.Errorf("the upgraded host is not well: %w", err)
}

// Rollback implements strategy.Strategy: it replays the reverse of the plan, when the
// repositories still have the versions of before. What somebody else has changed since the
// host was prepared stays. It does not go by the history of dnf: what an interrupted upgrade
// and its repair changed is several transactions there.
func (s *Strategy) Rollback(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	var outcome strategy.Outcome
	call, err := s.call(ctx, job)
	switch {
	case err != nil:
	case job.RollbackOf != 0:
		outcome, err = call.rollBack(ctx, job)
	default:
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
	if err := s.removeDuplicates(ctx, plan); err != nil {
		return 0, err
	}
	now, err := s.database(ctx)
	if err != nil {
		return 0, err
	}
	back := strategy.UndoOf(plan, now.missing).Back
	if len(back) == 0 { // It is called again after the reboot that it required.
		return s.finish(ctx, message.ChangeSet{})
	}
	lost, err := s.lost(ctx, back)
	if err != nil {
		return 0, err
	}
	if len(lost) > 0 {
		return 0, s.noWayBack(lost, back)
	}
	if err := s.carryOut(ctx, back, false, keep); err != nil {
		return 0, err
	}
	return s.finish(ctx, message.ChangeSet{Changes: back})
}

// keep is the reason of what an upgrade had replaced: it is kept as if a user had asked for it.
func keep(string) string { return "user" }

// lost returns the versions that no repository has among those that some changes go to.
func (s *call) lost(ctx context.Context, changes []message.Change) (lost []string, err error) {
	have, err := s.archives(ctx, changes)
	for _, c := range changes {
		if _, ok := have[nevra(c.Name, c.To)]; c.To != "" && !ok {
			lost = append(lost, nevra(c.Name, c.To))
		}
	}
	return lost, err
}

// noWayBack says which versions are lost, and how a person goes back once a repository has them.
func (s *call) noWayBack(lost []string, back []message.Change) error {
	return fmt.Errorf("%w to the versions of before: no repository of this host has %s; %s",
		strategy.ErrNoRollback, few(lost), remedy.DNFOldVersions.With(s.back(back)))
}

// back returns the commands by which a person makes changes that undo an upgrade.
func (s *call) back(changes []message.Change) string {
	arguments := map[string][]string{}
	for _, c := range changes {
		switch {
		case c.To == "":
			arguments["remove"] = append(arguments["remove"], c.Name)
		case c.From == "":
			arguments["install"] = append(arguments["install"], nevra(c.Name, c.To))
		default:
			arguments["downgrade"] = append(arguments["downgrade"], nevra(c.Name, c.To))
		}
	}
	var commands []string
	for _, verb := range []string{"downgrade", "install", "remove"} {
		if len(arguments[verb]) > 0 {
			commands = append(commands, s.command+" --refresh "+verb+" "+strings.Join(arguments[verb], " "))
		}
	}
	return strings.Join(commands, "; ")
}

// removeDuplicates completes the change of each package that a dnf which was killed has left in
// two versions. dnf goes back from one version only: from two it would install the one of
// before a second time, which rpm refuses.
func (s *call) removeDuplicates(ctx context.Context, plan []message.Change) error {
	now, err := s.database(ctx)
	if err != nil {
		return err
	}
	var double []message.Change
	for _, c := range plan {
		if c.From != "" && c.To != "" && slices.Contains(now[c.Name], c.From) && slices.Contains(now[c.Name], c.To) {
			double = append(double, c)
		}
	}
	if len(double) == 0 {
		return nil
	}
	return s.repair(ctx, message.ChangeSet{Changes: double})
}
