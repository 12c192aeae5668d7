package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/news"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// state is all that a controller knows. Only its loop reads and writes it.
type state struct {
	Options
	beside

	// ledger is the fold of the log, clock the clock of its runs.
	ledger run.Ledger
	clock  runClock
	// environments are those that are declared or have had a run, by name; default is always
	// among them.
	environments map[string]*environment
	// inOrder are they by name: to walk a map at each record would take longer.
	inOrder []*environment
	// ranIn is the environment of the last run that named a host; none is default.
	ranIn map[string]string
	// teller tells what is of no run.
	teller *news.Teller

	intent      intent
	hosts       hosts
	dispatching *dispatching
	queries     *queries
	healths     healths
	log         appender
	guard       guardKeeper
	trim        trimmer

	// started is when the session began, startedAt the newest record that was on
	// the log then.
	started   time.Time
	startedAt uint64
	// isLoaded tells that all has been read that was in the log and the store at
	// the start.
	isLoaded bool
	// judged tells that the hosts which were not heard of since the start count as silent.
	judged bool
	// alarm is why no command may be sent any more; nil when all is well.
	alarm     error
	alarmAt   time.Time
	witnesses witnesses
	// jumps notices jumps of the clock; lastJump is the last one that people are told
	// of.
	jumps    jumpWatch
	lastJump clockJump

	// waiters are all callers that wait, in the order in which they came.
	waiters []*waiter
	// stale tells that something has changed since the last decision, changes counts what
	// watchers were told of.
	stale   bool
	changes uint64
	// wokenAt is when all environments were asked last whatever had changed.
	wokenAt time.Time
}

// beside is how the state reaches what runs beside its loop.
type beside struct {
	// active tells that the controller may write.
	active bool
	// warnings outlive the session.
	warnings *warnings
	writer   *hostWriter
	past     *archiver
	news     *outbox
	// notify is called after each change, onLoaded once all has been read that was
	// in the log and the store at the start.
	notify, onLoaded func()
	// call has a function run in the loop.
	call func(context.Context, func())
	// chooseRollback gathers from the history what a rollback rolls back.
	chooseRollback func(context.Context, v1.Start) (choice, error)
}

func newState(o Options, b beside) *state {
	s := &state{
		Options: o, beside: b, intent: newIntent(o), hosts: newHosts(o), log: newAppender(o), guard: newGuardKeeper(o),
		witnesses: newWitnesses(o), trim: trimmer{Options: o, post: b.call}, started: o.Now(),
		teller: news.NewTeller(o.Tenant, ""), dispatching: newDispatching(o, b.call), queries: newQueries(o, b.call), environments: map[string]*environment{}, ranIn: map[string]string{},
	}
	s.hosts.turned, s.hosts.goal = s.turned, s.digestFor
	s.environment(defaultName)
	return s
}

// shown is the newest run as it was shown at some time, so that many watchers
// cost one view. run is nil when it was not shown yet.
type shown struct {
	run *v1.Run
	// changes are those of the state until then: with more it is to be made again.
	changes uint64
	// at is when it was made, until when it is to be made again at the latest.
	at, until time.Time
}

// forecast is the newest forecast of a run.
type forecast struct {
	run   *run.State
	made  time.Time
	took  time.Duration
	found *run.Forecast
}

const (
	// forecastPause is how many times as long as a forecast has taken passes before
	// the next one is made: its cost grows with the hosts.
	forecastPause = 20
	// longestForecast bounds how long a forecast is taken to have taken.
	longestForecast = time.Second
)

// forecastOf returns the forecast of a run of an environment; nil when there is none. Runs that share
// a disruption budget are played together, so the forecasts of all of them are new then.
func (s *state) forecastOf(env *environment, r *run.State) *run.Forecast {
	if r != env.ledger.Current() {
		return nil
	}
	if at := s.Now(); env.forecast.run != r || at.Sub(env.forecast.made).Abs() >= forecastPause*env.forecast.took {
		env.forecast = forecast{run: r, made: at}
		foreseen := s.ledger.Forecast(env.ledger, at)
		took := min(max(0, s.Now().Sub(at)), longestForecast)
		for _, f := range foreseen {
			s.environment(f.Name).forecast = forecast{run: f.Current(), made: at, found: &f.Forecast, took: took}
		}
		env.forecast.took = took
	}
	return env.forecast.found
}

// append appends an entry, and returns when to try again if that failed.
func (s *state) append(ctx context.Context, e entry) (retryAt time.Time) {
	worked := s.log.failing.IsZero()
	if s.log.append(ctx, e, &s.ledger) {
		return time.Time{}
	}
	if worked && !s.log.failing.IsZero() {
		s.show()
	}
	return s.log.retryAt
}

// checkLoaded lets callers in once all has been read that was in the log and the
// store at the start. A log that is not to be trusted is read no further.
func (s *state) checkLoaded() {
	if !s.isLoaded && s.intent.complete && s.hosts.versionsComplete && (s.alarm != nil || s.ledger.LastSeq >= s.log.last) {
		s.onLoaded()
		s.isLoaded, s.stale = true, true
		s.wakeAll()
	}
}

// raise sets the alarm: no command is sent any more until a person has put the log
// right, or has accepted it as it is.
func (s *state) raise(err error) {
	if s.alarm == nil {
		s.alarmAt = s.Now()
		s.setAlarm(err)
		s.Logger.Error("ALARM", "tenant", s.Tenant, "error", s.alarm)
		s.guard.damaged = true
		s.dropTasks()
		s.checkLoaded()
	}
}

// waitsForTheLog shows that nothing goes on before a person has put the log right.
func (s *state) waitsForTheLog() *v1.WaitingFor {
	return &v1.WaitingFor{What: "log", Detail: s.alarm.Error(), Since: view.Time(s.alarmAt)}
}

func (s *state) setAlarm(err error) {
	s.alarm = fmt.Errorf("%w; no command is sent any more: put back the newest backup, or stop the agent and run osupgrade-agent recover "+
		"to continue with this log under a new identity", err)
	s.changed()
}

// ready returns why nothing can be decided now; nil when it can.
func (s *state) ready() error {
	switch {
	case s.alarm != nil:
		return fmt.Errorf("%w: %w", run.ErrNotReady, s.alarm)
	case s.isBehind():
		return fmt.Errorf("%w: it is still reading the log", run.ErrNotReady)
	}
	return nil
}

// isBehind reports whether the log has records that are not folded yet.
func (s *state) isBehind() bool { return s.ledger.LastSeq < s.log.last }

// mayWrite returns why this controller can write nothing now; nil when it can.
func (s *state) mayWrite() error {
	if !s.active {
		return fmt.Errorf("%w: it is passive; ask the controller that is active", run.ErrNotReady)
	}
	return s.ready()
}

// serving returns why the controller cannot do its work, for /readyz; nil when it
// can.
func (s *state) serving() error {
	if s.alarm != nil {
		return s.ready()
	}
	if err := s.log.stuck(); err != nil {
		return fmt.Errorf("%w: %w", run.ErrNotReady, err)
	}
	return nil
}

// fleet returns the hosts of an environment whose application the configuration lists, for a run
// of the hosts in only; nil means all.
func (s *state) fleet(env *environment, only map[string]bool) []plan.Host {
	fleet, lasting := s.hosts.listed(s.hosts.in(env.name), s.intent.applications(), only), map[string]bool{}
	for _, e := range env.ledger.Roster().Lasting() {
		lasting[e.Host] = true
	}
	for i := range fleet {
		fleet[i].OutOfService = lasting[fleet[i].Name]
	}
	if s.alone() {
		return fleet
	}
	fleet = slices.DeleteFunc(fleet, func(h plan.Host) bool { return s.isElsewhere(env, h.Name) })
	for i, h := range fleet { // What a host owes comes with it.
		if last := s.lastOf(h.Name); last != env {
			_, fleet[i].OutOfService = last.ledger.Roster().Entry(h.Name)
		}
	}
	return fleet
}

// listed returns the hosts of all environments whose application the configuration lists.
func (s *state) listed() []plan.Host {
	return s.hosts.listed(s.hosts.known, s.intent.applications(), nil)
}

// changed has the watchers look again and the loop decide again, for all environments.
func (s *state) changed() {
	s.stale = true
	s.wakeAll()
	s.show()
}

// show has the watchers look again.
func (s *state) show() {
	s.changes++
	s.notify()
}

// hasGathered reports whether a controller that has just started knows enough of
// the run's hosts to go on: each was heard of, or the run knows that it is silent.
// After the grace period the others are silent, and so out of service.
func (s *state) hasGathered(env *environment, current *run.State, now time.Time) bool {
	if !env.gathered {
		env.gathered = !now.Before(s.started.Add(gracePeriod)) || !env.anyUnheard(current, &s.hosts)
	}
	return env.gathered
}

// silent returns the hosts that are not heard of, and since when; nil while a controller that
// has just started cannot tell.
func (s *state) silent(now time.Time) map[string]time.Time {
	if now.Before(s.started.Add(gracePeriod)) {
		return nil
	}
	if !s.judged {
		s.judged = true
		for name := range s.hosts.known {
			s.hosts.present.judge(name, s.started)
		}
	}
	return s.hosts.present.silent
}

// waiter is a caller that waits for the controller to reach something. Callers
// run in goroutines of their own; the loop owns the list of waiters and looks at
// each of them after every change of the state.
type waiter struct {
	ctx context.Context
	// look sends the answer if there is one by now, and reports whether it did.
	look func(*state) (answered bool)
	// request is what the caller asks of the run, nil when it asks nothing.
	request *request
	// lock is what a host that reboots by itself asks for, nil when none does.
	lock *lockRequest
}

// request is what a caller asks of the run under way. It is decided in its turn:
// what it comes to depends on the requests before it.
type request struct {
	run.Request
	// environment is the name of the environment whose run it is about; empty if the caller names
	// none. of is that environment once the request was addressed.
	environment string
	of          *environment
	// seq is the sequence of its event on the log, 0 before that is written;
	// refused is why there will be none.
	seq     uint64
	refused error
	// unlocks tells that it frees the lock of a host that reboots by itself, and concerns no run.
	unlocks bool
	// tried is the event that may be on the log though its append failed.
	tried []byte
}

// admit adds a waiter that is not answered at once.
func (s *state) admit(w *waiter) {
	if w.ctx.Err() != nil || w.look(s) {
		return
	}
	s.waiters = append(s.waiters, w)
	if w.request != nil || w.lock != nil {
		s.stale = true
		s.wakeAll()
	}
}

// answer looks at all waiters and drops those that have their answer or have
// gone.
func (s *state) answer() {
	waiting := s.waiters[:0]
	for _, w := range s.waiters {
		if w.ctx.Err() == nil && !w.look(s) {
			waiting = append(waiting, w)
		}
	}
	clear(s.waiters[len(waiting):])
	s.waiters = waiting
}
