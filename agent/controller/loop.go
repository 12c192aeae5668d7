package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// longestSleep bounds the time between two looks at the clock: a suspended
// machine and a clock that was set raise no event that a timer sees.
const longestSleep = time.Minute

// state is all that a controller knows. Only the loop touches it.
type state struct {
	Options
	session *session

	// ledger is the fold of the log, clock the time of the run under way, story
	// what has happened in the newest run.
	ledger run.Ledger
	clock  runClock
	story  view.Story

	intent intent
	hosts  hosts
	tasks  *dispatcher
	log    appender
	guard  guardKeeper
	trim   trimmer

	// archived is the newest run that was in the history at the start, archiveAt
	// when the run that has ended is to be written there anew; zero when it is
	// there as it is.
	archived  uint64
	archiveAt time.Time

	// started is when the session began, startedAt the newest record that was on
	// the log then.
	started   time.Time
	startedAt uint64
	// knows tells that all is known that was there at the start, gathered that
	// enough is known of the hosts to go on with a run.
	knows, gathered bool
	// alarm is why no command may be sent any more; nil when all is well.
	alarm error
	// idle is why a window that is open has no run, for people.
	idle v1.WaitingFor

	// waiters are all callers that wait for something, in the order in which they
	// came.
	waiters []*waiter
	// shown is the newest run as it was shown since the last change.
	shown shown
	// stale tells that something has changed since the last decision.
	stale bool
}

func newState(n *session) *state {
	s := &state{
		Options: n.o, session: n, intent: newIntent(n.o), hosts: newHosts(n.o), log: newAppender(n.o), guard: newGuardKeeper(n.o),
		trim: trimmer{Options: n.o, post: n.call}, started: n.o.Now(),
	}
	s.tasks = newDispatcher(n.o, n.call, func() { s.stale = true })
	return s
}

// loop takes one event after the other, decides after each that has changed
// something, and answers those who have waited for it.
func (s *state) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			s.guard.keep()
			s.tasks.dropAll()
			return
		case f := <-s.session.posted:
			f(s)
		case <-s.session.signs.Ready():
			s.hear(s.session.signs.Take())
		case <-timer.C:
			s.stale = true
		}
		s.refresh(ctx, timer)
		s.answer()
	}
}

// refresh decides when something has changed, and sets the timer for when to
// look again if nothing does.
func (s *state) refresh(ctx context.Context, timer *time.Timer) {
	if s.stale {
		s.stale = false
		s.hosts.pace.due = later(s.decide(ctx), s.Now())
		timer.Reset(s.hosts.pace.due.Sub(s.Now()))
	}
}

// hear notes what hosts say of themselves.
func (s *state) hear(signs []wait.Item[string, sign]) {
	for _, said := range signs {
		name, l := said.Key, said.Value
		if !l.aliveAt.IsZero() {
			s.heard(name, l.alive, l.aliveAt)
		}
		if !l.progressAt.IsZero() && s.hosts.progressed(name, l.progress, l.progressAt) {
			s.show()
		}
		if l.outcome != nil {
			s.tasks.report(name, *l.outcome, false)
		}
	}
}

// heard notes a heartbeat. What a host says of itself is written to the store
// when it is new, so that a controller knows its hosts from the start.
func (s *state) heard(name string, a message.Alive, at time.Time) {
	described, changed := s.hosts.heard(name, a, at)
	if described && s.session.active {
		s.session.writer.put(s.hosts.known[name].Host)
	}
	if changed {
		s.changed()
	}
}

// decide does what has to be done now and returns when to look again if
// nothing happens before.
func (s *state) decide(ctx context.Context) time.Time {
	now := s.Now()
	if now.Before(s.hosts.pace.looked) {
		s.setBack(now)
	}
	s.hosts.expire(now)
	s.hosts.pace.looked = now
	s.guard.keepWhenDue(now)
	s.archiveWhenDue(now)
	next := earliestSet(earliestSet(now.Add(longestSleep), s.guard.keepAt), earliestSet(s.hosts.present.next(), s.archiveAt))
	if !s.session.active || !s.knows || s.ready() != nil {
		return next // What is half read would be taken for the whole.
	}
	return earliestSet(next, s.act(ctx, now))
}

// act does what the log, the time and those who ask call for, and returns when to
// look again.
func (s *state) act(ctx context.Context, now time.Time) time.Time {
	step, q := s.next(now)
	tried := s.log.retryAt
	if now.Before(tried) {
		return tried
	}
	var at time.Time
	if step.Act != run.Wait || s.ledger.Current() != nil {
		at = s.take(ctx, now, step, q)
	} else {
		at = s.idleWork(ctx, now)
	}
	if s.log.retryAt.Equal(tried) {
		s.log.works()
	}
	return at
}

// idleWork does what there is to do while no run is under way, and returns when
// to look again.
func (s *state) idleWork(ctx context.Context, now time.Time) time.Time {
	if e, some := s.missed(now); some {
		s.Logger.Warn("a window was missed", "tenant", s.Tenant, "opened", e.Window, "closed", e.WindowEnd, "reason", e.Reason)
		return s.append(ctx, message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(e)}, message.Name(e))
	}
	next := s.openWhenDue(ctx, now)
	if s.ledger.LastSeq < s.log.last {
		return next // A run is being opened.
	}
	return earliestSet(next, s.trimWhenDue(ctx, now))
}

// trimWhenDue removes from the log what is before the newest run once that run
// and all before it are in the history.
func (s *state) trimWhenDue(ctx context.Context, now time.Time) time.Time {
	newest := s.ledger.Newest()
	if newest == nil || !s.trim.mayTrim(newest.OpenedSeq) || !s.session.past.complete(newest.Key()) {
		return time.Time{}
	}
	return s.trim.trim(ctx, now, newest.OpenedSeq-1)
}

// setBack forgets what was to be waited for by a clock that has been set back
// since: it would be waited for until the time comes again.
func (s *state) setBack(now time.Time) {
	s.started, s.hosts.joined, s.hosts.pace.due, s.hosts.pace.judgeAt = now, now, time.Time{}, time.Time{}
	s.intent.lookBackAt = time.Time{}
	s.log.setBack(now)
	s.guard.setBack(now)
	s.trim.setBack()
	if !s.archiveAt.IsZero() {
		s.archiveAt = now
	}
}

// learnt tells whoever waits for it that all is known by now: the log and the
// configuration as they were at the start, or that the log is not to be
// trusted.
func (s *state) learnt() {
	if !s.knows && s.intent.complete && s.hosts.versionsComplete && (s.alarm != nil || s.ledger.LastSeq >= s.log.last) {
		close(s.session.knows)
		s.knows, s.stale = true, true
	}
}

// raise stops all runs until somebody has looked at the log.
func (s *state) raise(err error) {
	if s.alarm == nil {
		s.alarm = fmt.Errorf("%w; no command is sent any more: compare the log with a backup, and only when you are sure that it is right "+
			"remove the guard file of tenant %s and start the agent again", err, s.Tenant)
		s.Logger.Error("ALARM", "tenant", s.Tenant, "error", s.alarm)
		s.guard.damaged = true
		s.tasks.dropAll()
		s.learnt()
		s.changed()
	}
}

// ready returns why nothing can be decided now.
func (s *state) ready() error {
	switch {
	case s.alarm != nil:
		return fmt.Errorf("%w: %w", run.ErrNotReady, s.alarm)
	case s.ledger.LastSeq < s.log.last:
		return fmt.Errorf("%w: it is still reading the log", run.ErrNotReady)
	}
	return nil
}

// mayWrite returns why nothing can be asked of this controller now.
func (s *state) mayWrite() error {
	if !s.session.active {
		return fmt.Errorf("%w: it is passive; ask the controller that is active", run.ErrNotReady)
	}
	return s.ready()
}

// serving returns why the controller cannot do its work, for those who watch
// over it.
func (s *state) serving() error {
	if s.alarm != nil {
		return s.ready()
	}
	if err := s.log.stuck(); err != nil {
		return fmt.Errorf("%w: %w", run.ErrNotReady, err)
	}
	return nil
}

// fleet returns the hosts whose application the configuration lists; those that
// only does not name are aside. Nil names all.
func (s *state) fleet(only map[string]bool) []plan.Host {
	return s.hosts.listed(s.intent.applications(), only)
}

// changed has whoever watches look again, and the loop decide again.
func (s *state) changed() {
	s.stale = true
	s.show()
}

// show has whoever watches look again.
func (s *state) show() {
	s.shown = shown{}
	s.session.notify()
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// earliestSet is the earlier of two times; the zero time is not set.
func earliestSet(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
