package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// A machine has the version that the last run has installed, by its number. A plan says which one it had
// before, and a rollback puts that in its place, in the same way as an upgrade.

var _ strategy.RollbackPreparer = system{}

// rollBack rolls back one of the last runs, of whatever environment.
func (w *World) rollBack(ctx context.Context, c *controller.Controller) error {
	w.mu.Lock()
	of := w.oracle.Upgraded(w.rng.n("operator upgrade", 3))
	w.mu.Unlock()
	if of == 0 {
		return run.ErrNoRun
	}
	_, err := c.Start(ctx, "operator", v1.Start{Reason: "it is slow", Duration: one(w.rng, "operator duration", "1m", "6m", "15m"), RollbackOf: of})
	return err
}

// older is the strategy of a worker that knows no rollbacks.
type older struct {
	strategy.Strategy
	strategy.Confirmer
	strategy.Releaser
	strategy.OutputsUser
}

// runOf is the change of the version in a plan.
func runOf(plan message.ChangeSet) message.Change {
	if n := slices.IndexFunc(plan.Changes, func(c message.Change) bool { return c.Name == "run" }); n >= 0 {
		return plan.Changes[n]
	}
	return message.Change{}
}

// versionName is a version in a plan: empty for what the machine had at first.
func versionName(version uint64) string {
	if version == 0 {
		return ""
	}
	return strconv.FormatUint(version, 10)
}

// versionOf is the version of a name.
func versionOf(name string) uint64 {
	version, _ := strconv.ParseUint(name, 10, 64) //nolint:errcheck // The first one has no name.
	return version
}

// undo notes that the machine has gone back from what a run has installed, with the world's lock held.
func (m *machine) undo(run uint64) {
	if before, changed := m.was[run]; changed && !m.undone[run] {
		m.version = before
	}
	m.undone[run] = true
}

// running is the version that runs, with the world's lock held: what waits for a boot does not.
func (m *machine) running() uint64 {
	if m.pending != 0 {
		return m.was[m.pending]
	}
	return m.version
}

// PrepareRollback implements strategy.RollbackPreparer. What an upgrade that failed has not changed, or an earlier
// rollback has rolled back, is not in its plan.
func (s system) PrepareRollback(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	if err := sleep(ctx, s.m.took("prepare")/2); err != nil {
		return message.ChangeSet{}, err
	}
	if s.m.w.fault("prepare fails", s.m.name) {
		return message.ChangeSet{}, strategy.Fail(message.Artifact, errors.New("sim: the old packages are gone"))
	}
	s.m.w.mu.Lock()
	defer s.m.w.mu.Unlock()
	if s.p.dead() {
		return message.ChangeSet{}, errDead
	}
	s.m.ran[job.Run] = s.m.running()
	back := message.ChangeSet{Changes: strategy.Reversed(job.Plan.Changes)}
	switch c := runOf(back); {
	case !s.m.traits.rollsBack:
		return message.ChangeSet{}, strategy.ErrNoRollback
	case c.To == versionName(s.m.version) && c.To == versionName(s.m.running()):
		s.m.w.count("rollbacks of what is not there")
		s.m.w.oracle.NothingToRollBack(s.m.name, job.Run, s.m.version, s.m.one())
		back = message.ChangeSet{}
	case c.From != versionName(s.m.version) && c.To != versionName(s.m.version):
		s.m.w.count("rollbacks of what somebody else has changed")
		return message.ChangeSet{}, strategy.Fail(message.Artifact, fmt.Errorf("sim: version %d is here, not %q", s.m.version, c.From))
	}
	s.m.w.note("%s is prepared for the rollback of run %d in run %d", s.m.name, job.RollbackOf, job.Run)
	s.m.w.oracle.Prepared(s.m.name, job.Run, "")
	return back, nil
}

// rollBack puts the version of before in place of what other runs have installed. It may be called again,
// also after the reboot that it has required.
func (s system) rollBack(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	if s.p.dead() {
		return 0, errDead
	}
	s.m.w.mu.Lock()
	installed, underWay := s.m.installed[job.Run] > 0, s.m.job
	s.m.w.mu.Unlock()
	switch {
	case underWay != nil:
		s.m.w.count("rollbacks that outlived their worker")
		if err := s.await(ctx, underWay); err != nil {
			return 0, err
		}
	case installed:
		s.m.w.count("rollbacks that go on")
	default:
		job.Release, job.Plan = nil, message.ChangeSet{Changes: strategy.Reversed(job.Plan.Changes)}
		if err := s.await(ctx, s.begin(job)); err != nil {
			return 0, err
		}
	}
	outcome := s.outcome(job.Run)
	if outcome == strategy.NotDone {
		return 0, errors.New("sim: the old version does not start")
	}
	return outcome, nil
}

// notBack returns what of the reversed plan of a rollback the machine lacks.
func (s system) notBack(job strategy.Job) []message.Change {
	s.m.w.mu.Lock()
	defer s.m.w.mu.Unlock()
	version := s.m.running()
	if job.Staged {
		version = s.m.version
	}
	if runOf(job.Plan).To == versionName(version) {
		return nil
	}
	return job.Plan.Changes
}
