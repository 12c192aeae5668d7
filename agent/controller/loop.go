package controller

import (
	"context"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// loop takes one input after the other: posted functions, telemetry of hosts, the
// timer. After each it decides, if something has changed, and looks at the waiters.
func (s *state) loop(ctx context.Context, posted <-chan func(*state), heard *wait.Queue[string, telemetry]) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			s.guard.keep()
			s.dropTasks()
			return
		case f := <-posted:
			s.followClock()
			f(s)
		case <-heard.Ready():
			s.followClock()
			s.hear(heard.Take())
		case <-timer.C:
			s.followClock()
			// What is shown may change by time alone, also with the decision.
			s.stale = true
			s.show()
		}
		if !s.alone() && !s.isBehind() {
			s.answer() // Otherwise a start would wait until the others have no anything left to do.
		}
		s.refresh(ctx, timer)
		s.answer()
	}
}

// refresh decides if something has changed, and sets the timer for the next
// decision.
func (s *state) refresh(ctx context.Context, timer *time.Timer) {
	if s.stale {
		s.stale = false
		due, now := s.decide(ctx), s.Now()
		s.hosts.stall.due = times.Later(due, now)
		timer.Reset(s.hosts.stall.due.Sub(now))
	}
}

// hear notes the telemetry of hosts.
func (s *state) hear(heard []wait.Item[string, telemetry]) {
	for _, said := range heard {
		name, l := said.Key, said.Value
		if !l.aliveAt.IsZero() {
			s.heard(name, l.alive, l.aliveAt)
		}
		if !l.progressAt.IsZero() && s.hosts.progressed(name, l.progress, l.progressAt) {
			s.show()
		}
		if l.outcome != nil {
			s.report(name, *l.outcome)
		}
		if l.planned != 0 {
			s.planned(name, l.planned)
		}
	}
}

// heard notes a heartbeat. When it describes the host anew it is written to the
// store, so that the next controller knows the host from the start.
func (s *state) heard(name string, a message.Alive, at time.Time) {
	if s.witnesses.hear(name, a.Seen) {
		s.stale = true
		s.wakeAll()
	}
	described, changed := s.hosts.heard(name, a, at)
	known := s.hosts.known[name]
	if described {
		s.place(known)
	}
	s.compareClocks(known, a, at)
	s.noteRolledBack(name, a.RolledBack, at)
	if described && s.active {
		s.writer.put(known.Host)
	}
	s.tellGoal(known, at)
	if changed {
		s.stale = true
		s.wake(name)
		s.show()
	}
}

// compareClocks notes whether the clock of a host that was heard at a time differs
// from the site's.
func (s *state) compareClocks(known *host, a message.Alive, at time.Time) {
	var skew time.Duration
	if !a.At.IsZero() {
		skew = a.At.Sub(at)
	}
	before := known.skew
	known.skew = skew
	if text := clockText(before, skew); text != "" {
		if s.warnings.note(known.Name, message.WarnClock, text, at) {
			s.show()
		}
	} else if skew.Abs() <= clockLimit && s.warnings.clear(known.Name, message.WarnClock) {
		s.show()
	}
}

// noteRolledBack notes which versions the machine of a host gave up by itself.
func (s *state) noteRolledBack(name string, versions []message.RolledBackVersion, at time.Time) {
	text := rolledBackText(versions)
	if text == "" && s.warnings.clear(name, message.WarnRolledBack) || text != "" && s.warnings.note(name, message.WarnRolledBack, text, at) {
		s.show()
	}
}

// decide does what has to be done now, and returns when to decide again at the
// latest.
func (s *state) decide(ctx context.Context) time.Time {
	if s.isLoaded {
		s.compareWitnesses(ctx)
	}
	now := s.Now() // After the comparison, which may ask the log and take seconds.
	s.hosts.expire(now)
	s.hosts.stall.looked = now
	s.guard.keepWhenDue(now)
	next := times.Sooner(times.Sooner(now.Add(longestSleep), s.guard.keepAt), s.hosts.present.next())
	for _, env := range s.inOrder {
		s.archiveWhenDue(env, now)
		next = times.Sooner(times.Sooner(next, env.archiveAt), s.followGoal(env, now))
	}
	next = times.Sooner(next, s.turns(now))
	mayWrite := s.active && s.isLoaded && s.ready() == nil // A log that is half read would be taken for the whole.
	if mayWrite {
		s.address()
	}
	awake := s.awake(now)
	if mayWrite {
		next = times.Sooner(next, s.askAll(ctx, awake, now))
	}
	if !s.isBehind() { // Else a record comes at once, which may change this.
		for _, env := range s.inOrder {
			if !env.timed {
				env.turnsAt, env.timed = s.turnsOf(env, now), true
			}
		}
	}
	return times.Sooner(next, s.nextDue(now))
}

// askAll has one environment after the other carry out its next decision, each in its turn. After an
// append that succeeded the others are asked once the record is folded, after one that failed at the
// time that it returns.
func (s *state) askAll(ctx context.Context, awake []*environment, now time.Time) time.Time {
	tried := s.log.retryAt
	for env := range inTurn(awake) {
		s.act(ctx, env, now)
		if s.isBehind() || !s.log.retryAt.Equal(tried) {
			return s.log.retryAt
		}
	}
	if now.Before(tried) {
		return tried
	}
	if at := s.serveLocks(ctx, now); s.isBehind() || !at.IsZero() {
		return at
	}
	s.log.works()
	return s.trimWhenDue(ctx, now)
}

// act carries out the next decision of the newest run of an environment, or does what there is to do
// without a run. The environment sleeps then if it waits. While the log takes no record nothing
// happens.
func (s *state) act(ctx context.Context, env *environment, now time.Time) {
	if current := env.ledger.Current(); current != nil {
		s.news.put(s.ledger.LastSeq, env.teller.Waiting(current, s.runTime(now), s.silent(now), s.inCommand(env))...)
	}
	s.tellGoals(env, now)
	again := env.compared.read(ctx, env.ledger.Current(), now)
	decision, q := s.next(env, now)
	last, tried := s.log.last, s.log.retryAt
	if now.Before(tried) {
		return
	}
	var at time.Time
	if decision.Act != run.Wait || env.ledger.Current() != nil {
		at = s.take(ctx, env, now, decision, q)
	} else {
		at = s.idleWork(ctx, env, now)
	}
	if s.log.last == last && s.log.retryAt.Equal(tried) {
		env.sleep(times.Sooner(at, again), s.clock.ahead(now))
	}
}

// idleWork does what there is to do between runs: it notes windows that were missed, and opens
// runs. It returns when to decide again.
func (s *state) idleWork(ctx context.Context, env *environment, now time.Time) time.Time {
	if e, some := s.missed(env, now); some {
		logger := s.Logger.With("tenant", s.Tenant)
		if env.name != defaultName {
			logger = logger.With("environment", env.name)
		}
		if e.UpToDate() {
			logger.Info("a window needed no run", "opened", e.Window, "closed", e.WindowEnd, "reason", e.Reason)
		} else {
			logger.Warn("a window was missed", "opened", e.Window, "closed", e.WindowEnd, "reason", e.Reason)
		}
		return s.append(ctx, eventEntry(0, e))
	}
	return s.openWhenDue(ctx, env, now)
}

// followClock discards everything that was computed from the clock when the clock was set,
// forward or back, and reports a large jump.
func (s *state) followClock() {
	jump, some := s.jumps.look(s.Now())
	if !some {
		return
	}
	if jump.by().Abs() > toldJump {
		s.lastJump = jump
		s.Logger.Warn("the clock of the site was set, or the machine was suspended; all that goes by the clock is decided anew",
			"tenant", s.Tenant, "showed", jump.from.UTC(), "shows", jump.to.UTC(), "jump", jump.by().Round(time.Second))
	}
	s.intent.followClock()
	for _, env := range s.inOrder {
		env.followClock()
	}
	s.hosts.jump(jump)
	s.log.jump(jump)
	if jump.by() < 0 {
		s.setBack(jump.to)
	}
	s.changed()
}

// setBack adjusts all times that were set by a clock that has been set back since:
// they would lie in the future for as long as the clock was ahead.
func (s *state) setBack(now time.Time) {
	s.started, s.hosts.joined = now, now
	s.intent.setBack(now)
	s.guard.setBack(now)
	s.trim.setBack()
	s.queries.forget()
	for _, env := range s.inOrder {
		env.setBack(now)
	}
}
