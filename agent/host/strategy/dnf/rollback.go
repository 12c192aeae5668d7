package dnf

import (
	"cmp"
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/begun"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// A run that is over is rolled back by the reverse of its plan, from packages that prepare has fetched:
// from the repositories of the host, or from these as they were when it had the release of before.

// PrepareRollback implements strategy.RollbackPreparer.
func (s *Strategy) PrepareRollback(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	return strategy.PrepareBy(ctx, job, "rollback", func() (*call, error) { return s.call(ctx, job) }, (*call).prepareRollback)
}

func (s *call) prepareRollback(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	if err := s.awaitLocks(ctx); err != nil {
		return message.ChangeSet{}, err
	}
	sources, err := s.sourcesBack(ctx, job)
	if err != nil {
		return message.ChangeSet{}, err
	}
	s.progress(0, "refreshing the repositories")
	sources, away := refreshed(ctx, sources)
	if len(sources) == 0 || ctx.Err() != nil {
		return message.ChangeSet{}, cmp.Or(away, ctx.Err())
	}
	if err := s.sound(ctx); err != nil {
		return message.ChangeSet{}, err
	}
	now, err := s.database(ctx)
	if err != nil {
		return message.ChangeSet{}, err
	}
	plan := strategy.UndoOf(job.Plan.Changes, now.missing).Plan(job.Progress)
	if len(plan.Changes) == 0 {
		return plan, nil
	}
	from, err := s.sourceBack(ctx, sources, plan.Changes)
	if err != nil {
		return message.ChangeSet{}, cmp.Or(away, err)
	}
	s.progress(30, "downloading")
	if err := from.carry(ctx, replay(plan.Changes, now, false, keep), s.fetch); err != nil {
		return message.ChangeSet{}, err
	}
	if plan.Reboot, err = s.willReboot(ctx, plan); err != nil {
		return message.ChangeSet{}, err
	}
	return plan, s.toDisk(ctx)
}

// sourcesBack are the sources of the versions of before: the repositories of the host as they are now, and
// as they were when it had the release of before.
func (s *call) sourcesBack(ctx context.Context, job strategy.Job) ([]*call, error) {
	present := *s
	present.what, present.options = release.Packages{}, s.Strategy.options
	before, some := job.Past()
	if !some || s.Snapshot == "" {
		return []*call{&present}, nil
	}
	past, err := s.call(ctx, before)
	return []*call{&present, past}, err
}

// refreshed fetches the metadata of sources, and returns those that answer: one is enough for the way back.
// away is the error of one that does not.
func refreshed(ctx context.Context, sources []*call) (usable []*call, away error) {
	for _, from := range sources {
		if err := from.refresh(ctx); err != nil {
			away = err
			continue
		}
		usable = append(usable, from)
	}
	return usable, away
}

// sourceBack returns the first source that has all versions of before. One that cannot tell, such as one
// without metadata, leaves it to the others.
func (s *call) sourceBack(ctx context.Context, sources []*call, back []message.Change) (*call, error) {
	var lost []string
	var failed error
	for _, from := range sources {
		lacks, err := from.lost(ctx, back)
		switch {
		case err != nil:
			failed = err
		case len(lacks) == 0:
			return from, nil
		default:
			lost = lacks
		}
	}
	return nil, cmp.Or(failed, strategy.Fail(message.Repository, s.noWayBack(lost, back)))
}

// rollBack undoes a plan of an earlier run, from what prepare has fetched. It is called again after a
// crash and after the reboot that it required.
func (s *call) rollBack(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	if err := s.awaitLocks(ctx); err != nil {
		return 0, err
	}
	sources, err := s.sourcesBack(ctx, job)
	if err != nil {
		return 0, err
	}
	again := len(begun.Read(s.StateDir)) > 0
	now, err := s.database(ctx)
	if err != nil {
		return 0, err
	}
	undo := strategy.UndoOf(job.Plan.Changes, now.missing)
	was := strategy.Reversed(undo.Own(job.Plan.Changes))
	if len(undo.Back) > 0 {
		from, err := s.sourceBack(ctx, sources, undo.Back)
		if err == nil && !again {
			err = begun.Write(s.StateDir, job.Plan.Changes)
		}
		if err == nil {
			err = from.carryBack(ctx, undo.Back)
		}
		if err != nil {
			return 0, err
		}
	}
	if again {
		if err := s.mendBack(ctx, sources, was); err != nil {
			return 0, err
		}
	}
	return s.finish(ctx, message.ChangeSet{Changes: undo.Back})
}

// carryBack has dnf install versions of before, and fetch again what of them is lost or damaged.
func (s *call) carryBack(ctx context.Context, back []message.Change) error {
	err := s.carryOut(ctx, back, false, keep, offline)
	if strategy.ClassOf(err) != message.Artifact {
		return err
	}
	s.progress(-1, message.CleanText("fetching again what is damaged or lost: "+err.Error()))
	return s.carryOut(ctx, back, false, keep)
}

// mendBack installs the versions of before once more if the rollback was interrupted: the scripts of
// packages may have been cut off, and the disk may lack what the database has recorded.
func (s *call) mendBack(ctx context.Context, sources []*call, was []message.Change) error {
	now, err := s.database(ctx)
	if err != nil {
		return err
	}
	cut, err := s.interrupted(ctx)
	if err != nil {
		return err
	}
	unlike, err := s.unlike(ctx, was, now)
	if err != nil || !cut && !unlike {
		return err
	}
	from, err := s.sourceBack(ctx, sources, was)
	if err != nil {
		return err
	}
	return from.repair(ctx, message.ChangeSet{Changes: was})
}
