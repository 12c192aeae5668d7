package apt

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// A run that is over is rolled back like an upgrade that has failed, from the archives alone: prepare
// fetches those of before, wherever they still are.

// PrepareRollback implements strategy.RollbackPreparer.
func (s *Strategy) PrepareRollback(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	return strategy.PrepareBy(ctx, job, "rollback", func() (*call, error) { return s.call(job) }, (*call).prepareRollback)
}

func (s *call) prepareRollback(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	if err := s.sound(ctx); err != nil {
		return message.ChangeSet{}, err
	}
	now, err := s.packages(ctx)
	if err != nil {
		return message.ChangeSet{}, err
	}
	undo := strategy.UndoOf(job.Plan.Changes, now.missing)
	plan := undo.Plan(job.Progress)
	if len(plan.Changes) == 0 {
		return plan, nil
	}
	if s.what.Distribution != "" {
		return message.ChangeSet{}, strategy.Fail(message.Artifact, fmt.Errorf("%w: nothing leads back to the release before; %s", strategy.ErrNoRollback, remedy.AptRelease))
	}
	if err := s.fetchBack(ctx, job, undo); err != nil {
		return message.ChangeSet{}, err
	}
	if err := s.keepAutomaticBefore(ctx); err != nil {
		return message.ChangeSet{}, err
	}
	plan.Reboot = s.willReboot(plan, now)
	return plan, s.toDisk(ctx)
}

// source is where versions of before may still be.
type source struct {
	*call
	// refresh fetches its lists; nil if the host has them.
	refresh func(ctx context.Context) error
}

// sourcesBack are the sources of the versions of before, the nearest first: the archives and lists that
// the host has, its repositories now, and as they were when it had the release of before.
func (s *call) sourcesBack(job strategy.Job) ([]source, error) {
	present := *s
	present.sources = nil
	all := []source{{&present, nil}, {&present, present.update}}
	before, some := job.Past()
	if !some {
		return all, nil
	}
	past, err := s.call(before)
	if err != nil {
		return nil, err
	}
	return append(all, source{past, func(ctx context.Context) error {
		s.progress(-1, "fetching the lists as of "+past.what.AsOf.UTC().Format(time.RFC3339))
		return past.lists(ctx, past.host, aptFolder, nil)
	}}), nil
}

// fetchBack fetches all archives that the way back needs.
func (s *call) fetchBack(ctx context.Context, job strategy.Job, undo strategy.Undo) error {
	all, err := s.sourcesBack(job)
	if err != nil {
		return err
	}
	var lost []string
	for _, from := range all {
		if from.refresh != nil {
			err = from.refresh(ctx)
		}
		if err == nil {
			lost, err = from.fetchArchivesBack(ctx, undo)
		}
		if err == nil && len(lost) == 0 || ctx.Err() != nil || strategy.ClassOf(err) == message.Install {
			return err
		}
	}
	if err != nil {
		return err
	}
	return strategy.Fail(message.Repository, fmt.Errorf("%w to the versions of before: neither a repository of this host nor %s has %s; offer them in a repository, or put their archives there",
		strategy.ErrNoRollback, archivesFolder, few(lost)))
}

// fetchArchivesBack fetches what a source has of the way back; lost are the versions that it does not
// have.
func (s *call) fetchArchivesBack(ctx context.Context, undo strategy.Undo) (lost []string, err error) {
	args, lost, err := s.archivesOf(ctx, undo.Back)
	if err != nil || len(lost) > 0 {
		return lost, err
	}
	offered := slices.DeleteFunc(slices.Clone(undo.Back), func(c message.Change) bool {
		return !slices.Contains(args, target{c.Name, c.To}.argument())
	})
	archives, err := s.records(ctx, offered)
	if err != nil {
		return nil, err
	}
	if err := s.room(ctx, message.ChangeSet{Changes: offered}, archives); err != nil {
		return nil, err
	}
	if _, err := s.dropDamaged(offered, s.sumsOf(offered, archives)); err != nil {
		return nil, err
	}
	command := backCommand(args)
	would, err := s.simulate(ctx, command...)
	if err != nil {
		return nil, err
	}
	if err := onlyUndoes(undo, would, command); err != nil {
		return nil, err
	}
	if err := s.fetchArchives(ctx, span{10, 95}, command); err != nil {
		return nil, err
	}
	sums := s.sumsOf(offered, archives)
	for _, c := range undo.Back {
		file := s.archiveOf(c)
		switch key := (target{c.Name, c.To}).argument(); {
		case c.To == "" || sums[key] != "":
		case file == "":
			lost = append(lost, c.Name+" "+c.To)
		default: // No list knows it any more: it is as it was kept.
			if sums[key], err = sumOfFile(file); err != nil {
				return nil, err
			}
		}
	}
	return lost, s.keepSums(sums)
}
