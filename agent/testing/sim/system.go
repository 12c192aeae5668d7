package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/oracle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// system is a machine as a worker sees it: the strategy, the kernel and the checks.
// A dead worker has no effect.
type system struct {
	m *machine
	p *process
}

var _ strategy.Strategy = system{}

// errLocked is a failure after which an action is taken again.
var errLocked = strategy.Fail(message.Lock, errors.New("sim: another package manager holds the lock"))

// Detect implements strategy.Strategy.
func (s system) Detect(context.Context) error {
	if s.m.w.fault("strategy does not fit", s.m.name) {
		return errors.New("sim: the package database is locked")
	}
	return nil
}

// Versions implements strategy.Strategy.
func (s system) Versions(context.Context) (map[string]string, error) {
	if s.m.w.fault("versions cannot be had", s.m.name) {
		return nil, errors.New("sim: the package database is locked")
	}
	s.m.w.mu.Lock()
	defer s.m.w.mu.Unlock()
	return map[string]string{"base": fmt.Sprint(len(s.m.installed)), "kernel": fmt.Sprint(s.m.boot)}, nil
}

// Plan implements strategy.Strategy: an offer by a release says whether the machine has that.
func (s system) Plan(_ context.Context, job strategy.Job) (message.ChangeSet, error) {
	if job.Release == nil {
		return message.ChangeSet{}, strategy.ErrNoPlan
	}
	if s.m.w.fault("plan fails", s.m.name) {
		return message.ChangeSet{}, errors.New("sim: there are no lists of packages")
	}
	s.m.w.mu.Lock()
	defer s.m.w.mu.Unlock()
	s.m.w.count("offers by a release")
	if s.m.lacks(releaseOfJob(job)) {
		return message.ChangeSet{Changes: []message.Change{{Name: "release", To: job.ReleaseName}}}, nil
	}
	return message.ChangeSet{}, nil
}

// Prepare implements strategy.Strategy.
func (s system) Prepare(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	if s.p.dead() {
		return message.ChangeSet{}, errDead
	}
	if err := sleep(ctx, s.m.took("prepare")/2); err != nil {
		return message.ChangeSet{}, err
	}
	if s.m.w.fault("prepare takes long", s.m.name) {
		if err := sleep(ctx, s.m.w.rng.span("prepare takes/"+s.m.name, 20*time.Second, 8*time.Minute)); err != nil {
			return message.ChangeSet{}, err
		}
	}
	job.Progress(100, "prepared")
	if s.m.w.fault("prepare finds a lock", s.m.name) {
		return message.ChangeSet{}, errLocked
	}
	if s.m.w.fault("prepare fails", s.m.name) {
		return message.ChangeSet{}, errors.New("sim: no space for the packages")
	}
	s.m.w.mu.Lock()
	defer s.m.w.mu.Unlock()
	if s.p.dead() {
		return message.ChangeSet{}, errDead
	}
	s.m.w.note("%s is prepared for run %d", s.m.name, job.Run)
	s.m.w.oracle.Prepared(s.m.name, job.Run, releaseOfJob(job))
	return s.m.addPackages(s.m.withhold(s.p.name, job), job), nil
}

// checkPlan checks that an action has the plan of its run.
func (s system) checkPlan(job strategy.Job) error {
	if c := runOf(job.Plan); c.To != fmt.Sprint(job.Run) {
		return fmt.Errorf("sim: run %d is to be carried out by the plan %v", job.Run, job.Plan.Changes)
	}
	return nil
}

// Missing implements strategy.Strategy.
func (s system) Missing(_ context.Context, job strategy.Job) ([]message.Change, error) {
	if job.Reversed && runOf(job.Plan).From != fmt.Sprint(job.Run) { // That of a rollback.
		return s.notBack(job), nil
	}
	if job.Reversed { // The reversed plan.
		if s.outcome(job.Run) == strategy.NotDone {
			return nil, nil
		}
		return job.Plan.Changes, nil
	}
	if err := s.checkPlan(job); err != nil {
		return nil, err
	}
	outcome := s.outcome(job.Run)
	if outcome == strategy.Done || outcome == strategy.RebootRequired && job.Staged {
		return nil, nil
	}
	return job.Plan.Changes, nil
}

// Upgrade implements strategy.Strategy.
func (s system) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	if s.p.dead() {
		return 0, errDead
	}
	if err := s.checkPlan(job); err != nil {
		s.m.w.violated("%s: %v", s.m.name, err)
		return 0, err
	}
	if s.m.w.fault("upgrade finds a lock", s.m.name) {
		return 0, errLocked
	}
	if err := s.seesOutputs(ctx, job); err != nil {
		return 0, err
	}
	j := s.begin(job)
	if err := s.await(ctx, j); err != nil {
		return 0, err
	}
	return s.outcome(job.Run), nil
}

// begin starts the package manager.
func (s system) begin(of strategy.Job) *job {
	run := of.Run
	s.m.w.mu.Lock()
	defer s.m.w.mu.Unlock()
	s.m.w.note("%s begins to upgrade for run %d", s.m.name, run)
	s.judgeBusy(of)
	s.m.w.oracle.UpgradeBegins(s.m.name, s.p.name, run, releaseOfJob(of))
	s.m.w.getsTheSame(s.m, of)
	j := &job{run: run, of: releaseOfJob(of), system: systemOf(of.Plan), version: versionOf(runOf(of.Plan).To), isRollback: of.RollbackOf != 0, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(s.m.w.ctx)
	j.stop = cancel
	s.m.job = j
	go s.m.upgrade(ctx, j)
	return j
}

// judgeBusy judges that nothing begins on a busy machine. A rollback that is taken up may: the call that was
// cut short may have left the machine half-way.
func (s system) judgeBusy(of strategy.Job) {
	since := s.m.busySince
	if since.IsZero() || time.Since(since) <= inFlight {
		return
	}
	if of.RollbackOf != 0 && s.m.w.oracle.TakesUp(s.m.name, s.p.name) {
		s.m.w.count("rollbacks taken up on a busy machine")
		return
	}
	s.m.w.violated("%s upgrades for run %d, and is busy since %s", s.m.name, of.Run, since)
}

// await waits for the package manager. When ctx ends first, it stops the package
// manager, unless that survives the death of the worker.
func (s system) await(ctx context.Context, j *job) error {
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		if !s.m.traits.survives || !s.p.dead() {
			j.stop()
			<-j.done
		}
		return ctx.Err()
	}
}

func (s system) outcome(run uint64) strategy.Outcome {
	s.m.w.mu.Lock()
	defer s.m.w.mu.Unlock()
	switch {
	case s.m.installed[run] == 0 || s.m.undone[run]:
		return strategy.NotDone
	case s.m.pending == run:
		return strategy.RebootRequired
	}
	return strategy.Done
}

// Resume implements strategy.Strategy.
func (s system) Resume(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	s.m.w.count("upgrades resumed")
	if err := s.checkPlan(job); err != nil {
		s.m.w.violated("%s: %v", s.m.name, err)
		return 0, err
	}
	s.m.w.mu.Lock()
	j := s.m.job
	s.m.w.mu.Unlock()
	if j != nil {
		s.m.w.count("upgrades that outlived their worker")
		if err := s.await(ctx, j); err != nil {
			return 0, err
		}
	}
	if err := sleep(ctx, time.Second); err != nil {
		return 0, err
	}
	return s.outcome(job.Run), nil
}

// Verify implements strategy.Strategy.
func (s system) Verify(ctx context.Context, job strategy.Job) error {
	if err := sleep(ctx, s.m.traits.action/4); err != nil {
		return err
	}
	if s.m.w.fault("verify fails", s.m.name) {
		return errors.New("sim: the service does not start")
	}
	if s.outcome(job.Run) != strategy.Done {
		return fmt.Errorf("sim: run %d has not upgraded this host", job.Run)
	}
	return nil
}

// Rollback implements strategy.Strategy.
func (s system) Rollback(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	if job.RollbackOf != 0 {
		return s.rollBack(ctx, job)
	}
	if err := sleep(ctx, s.m.traits.action/4); err != nil {
		return 0, err
	}
	if !s.m.traits.rollsBack {
		return 0, strategy.ErrNoRollback
	}
	if s.m.w.fault("rollback fails", s.m.name) {
		return 0, errors.New("sim: the old packages are gone")
	}
	s.m.w.mu.Lock()
	defer s.m.w.mu.Unlock()
	if s.p.dead() {
		return 0, errDead
	}
	if s.m.traits.bootsBack && s.m.installed[job.Run] > 0 && !s.m.undone[job.Run] {
		if s.m.back != job.Run {
			s.m.back, s.m.backAt = job.Run, s.m.boot
		}
		if s.m.backAt == s.m.boot {
			s.m.w.count("rollbacks that need a reboot")
			return strategy.RebootRequired, nil
		}
	}
	s.m.undo(job.Run)
	if s.m.pending == job.Run {
		s.m.pending, s.m.staged = 0, ""
	}
	if s.m.old != "" && s.m.installer == job.Run {
		s.m.release, s.m.old = s.m.old, ""
	}
	s.m.w.oracle.RolledBack(s.m.name, job.Run)
	return strategy.Done, nil
}

// BootID implements worker.Machine.
func (s system) BootID() (string, error) {
	s.m.w.mu.Lock()
	defer s.m.w.mu.Unlock()
	return s.m.bootID(), nil
}

// Reboot implements worker.Machine.
func (s system) Reboot(ctx context.Context, _ strategy.Job) error {
	w, name := s.m.w, s.m.name
	switch {
	case s.p.dead():
		return errDead
	case w.fault("reboot is refused", name):
		return errors.New("sim: a shutdown is inhibited")
	case w.fault("reboot call hangs", name):
		<-ctx.Done()
		return ctx.Err()
	}
	w.mu.Lock()
	run, boot := s.p.run, s.m.boot
	w.note("%s is asked to reboot for run %d", name, run)
	asked := w.oracle.RebootAsked(name, s.p.name, run)
	w.mu.Unlock()
	switch {
	case w.fault("reboot is ignored", name):
		return nil
	case w.fault("soft-reboot", name):
		w.after(time.Second, func() { s.m.killAll("soft-reboot") })
		return nil
	}
	d := w.rng.span("shutdown/"+name, 100*time.Millisecond, 5*time.Second)
	if w.fault("reboot is late", name) {
		d = w.rng.span("late shutdown/"+name, 30*time.Second, 4*time.Minute)
		s.m.stopsServices(boot, d)
	}
	w.after(d, func() { s.m.shutDown(asked, boot) })
	return nil
}

// stopsServices kills the workers during a shutdown that takes a while: a shutdown stops
// services, the worker among them, and something may start the worker again. boot is the boot
// that ends.
func (m *machine) stopsServices(boot int, within time.Duration) {
	stop := func() {
		m.w.mu.Lock()
		same := m.up && m.boot == boot
		m.w.mu.Unlock()
		if same {
			m.killAll("shutdown")
		}
	}
	for range 2 {
		if m.w.rng.chance("late shutdown stops services/"+m.name, 0.5) {
			m.w.after(m.w.rng.span("late shutdown stops services/"+m.name, 0, within), stop)
		}
	}
}

// shutDown takes the machine down for a reboot, unless the boot in which it was asked
// for has ended.
func (m *machine) shutDown(asked oracle.Reboot, boot int) {
	m.w.mu.Lock()
	same := m.up && m.boot == boot
	if same {
		m.w.oracle.GoesDown(m.name, asked)
	}
	m.w.mu.Unlock()
	if !same {
		return
	}
	m.cutPower("reboot")
}

// killAll ends all workers and leaves the kernel as it is.
func (m *machine) killAll(why string) {
	m.w.mu.Lock()
	procs := append([]*process(nil), m.procs...)
	m.w.mu.Unlock()
	for _, p := range procs {
		p.die(why)
	}
}

// Run implements worker.Checks.
func (s system) Run(ctx context.Context, t message.Task) message.Outcome {
	o := s.m.w.perform(ctx, t, s.p)
	if o.OK && t.Kind == message.AfterHost {
		s.m.w.mu.Lock()
		defer s.m.w.mu.Unlock()
		s.m.w.oracle.ChecksPassed(s.m.name)
	}
	return o
}

// Baseline implements worker.Checks.
func (system) Baseline(context.Context, uint64) error { return nil }

// perform runs a task on a host or at the site.
func (w *World) perform(ctx context.Context, t message.Task, p *process) message.Outcome {
	whose := t.Host
	w.count("tasks " + string(t.Kind))
	if t.Kind.OfStage() {
		w.stepRuns(t)
	}
	if t.OnSite() {
		w.count("tasks at the site")
	}
	if err := sleep(ctx, w.rng.span("task takes/"+whose, 100*time.Millisecond, 3*time.Second)); err != nil {
		return t.Outcome(false, err.Error())
	}
	if w.fault("task hangs", whose) {
		<-ctx.Done()
		return t.Outcome(false, "it hung")
	}
	bad := w.fault("task fails", whose)
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.dead() {
		return t.Outcome(false, errDead.Error())
	}
	if t.Kind.OfStage() || t.Kind == message.Start {
		w.note("%s %s of run %d ends at %q: failed %t", t.Kind, t.Stage, t.Run, t.Host, bad)
		w.oracle.TaskEnds(t.Key(), !bad)
	}
	// A hook that fails may have had its effect all the same.
	if m := w.machines[t.Host]; m != nil {
		switch t.Kind {
		case message.Drain:
			m.drained = t.Run
			w.note("%s is drained for run %d", m.name, t.Run)
			w.oracle.Drained(m.name, t.Run)
		case message.Undrain:
			if !bad {
				m.drained = 0
				w.note("%s is undrained", m.name)
				w.oracle.Undrained(m.name)
			}
		}
	}
	if bad {
		return t.Outcome(false, "sim: it failed")
	}
	return w.gives(t, t.Outcome(true, ""))
}

// stepRuns tells the oracle that a step is run now.
func (w *World) stepRuns(t message.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("step %s of run %d is run at %q for the time %d", t.Stage, t.Run, t.Host, t.Attempt)
	w.oracle.StepSees(t.Key(), t.Outputs)
	w.oracle.StepRuns(t.Key(), t.Hook.Script == undoScript)
}
