package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/trouble"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// state is all that a controller knows. Only the goroutine of Run touches it.
type state struct {
	Options
	// clock is that of the run under way.
	clock   runClock
	ledger  run.Ledger
	config  *v1.OSUpgrade
	windows []window.Window
	// configErr is why the configuration cannot be used. calendars are those
	// that can be read, calendarErrs why others cannot.
	configErr        error
	calendars        map[string]*calendar.Calendar
	calendarErrs     map[string]error
	calendarsSeen    bool
	calendarRevision uint64
	// schedule is what windows and calendars add up to, as written at
	// scheduledAt at the latest.
	schedule    window.Schedule
	scheduledAt time.Time
	// lookBackAt is when to look again for windows that were missed.
	lookBackAt time.Time
	// ahead is the window that is open or opens next, after the one that follows
	// a window that had its run, freezing the freeze.
	ahead, after outlook[window.Opening]
	freezing     outlook[window.Freeze]
	// revision is how far the configuration was read, reports how far the
	// versions were, and reported tells that those of the start are all seen.
	revision, reports uint64
	reported          bool
	// rollout is the tenant's, nil when there is none; rolloutErr why it cannot
	// be read. rolledOut tells that it was seen, rolloutSeen how far.
	rollout     *v1.Rollout
	rolloutErr  error
	rolledOut   bool
	rolloutSeen uint64
	hosts       map[string]*host
	// forgotten are the hosts that were deleted, and not heard of since, and who
	// has deleted them. One that is merely not known may be at work: it was not
	// kept yet when the controller before this one died.
	forgotten map[string]string
	// present is who is online, suspects whose presence the run may not know.
	present  presence
	suspects map[string]bool
	// settled tells that enough is known of the hosts to go on with a run.
	settled bool
	tasks   *errands
	past    *historian
	// kept is the newest run that was in the history at the start.
	kept uint64
	// waiters are all callers that wait for something, in the order in which they
	// came.
	waiters []*waiter
	// events tell what happened in the newest run, for people.
	events   []v1.RunEvent
	versions map[string]reported
	keeper   *keeper
	// started is when the controller began, joined when a host was first
	// heard of that was not known.
	started, joined time.Time
	// first is the oldest record that the log has, trimAt when a trim that
	// failed is tried again, trimming tells that one is under way.
	first    uint64
	trimAt   time.Time
	trimming bool
	// last is the sequence up to which the log must be folded before the next
	// decision: what stood there at the start, and what was appended since.
	last uint64
	// startedAt is the newest record that was there at the start.
	startedAt uint64
	// pause is the wait before a failed append is tried again, retryAt its end.
	pause   time.Duration
	retryAt time.Time
	// stuck is why the last append failed, stuckSince since when none came
	// through; zero while they do.
	stuck      error
	stuckSince time.Time
	// idle is why a window that is open has no run, for people.
	idle v1.WaitingFor
	// alarm is why no command may be sent any more; nil when all is well.
	alarm error
	// rekeepAt is when the run that has ended is to be kept anew in the history;
	// zero when it is kept as it is.
	rekeepAt time.Time
	// keepAt is when the guard is to be kept; zero when it is. keepPause is the
	// wait after it could not be.
	keepAt    time.Time
	keepPause time.Duration
	// guarding, writing and asking are the troubles with the guard, with writing
	// to the log and with asking for its end.
	guarding, writing, asking trouble.Spell
	// looked is when the last decision was made, due when the next was to be made
	// at the latest, and judgeAt when hosts may be given up again.
	looked, due, judgeAt time.Time
	// stale tells that something has changed since the last decision.
	stale    bool
	watchers map[chan struct{}]bool
	// shown is the newest run as it was shown since the last change, at shownAt,
	// so that many who watch cost one view; nil when it was not.
	shown   *v1.Run
	shownAt time.Time
	// configured tells that the configuration was seen; knows is closed when
	// all is known that was there at the start.
	configured bool
	knows      chan struct{}
}

const (
	// showFor is how long a view is shown, though nothing changes: what it tells
	// of the future goes by the clock.
	showFor = 5 * time.Second
	// longestSleep bounds the time between two looks at the clock: a suspended
	// machine and a clock that was set raise no event that a timer sees.
	longestSleep = time.Minute
	// keepAfter is how long records may go unguarded.
	keepAfter = time.Second
	// firstPause and longestPause bound the wait after a failed write.
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
)

func newState(o Options, k *keeper, knows chan struct{}) *state {
	s := &state{
		Options: o, hosts: map[string]*host{}, forgotten: map[string]string{}, versions: map[string]reported{}, keeper: k, started: o.Now(),
		watchers: map[chan struct{}]bool{}, knows: knows, present: newPresence(), suspects: map[string]bool{},
		calendars: map[string]*calendar.Calendar{}, calendarErrs: map[string]error{},
	}
	s.past, s.tasks = newHistorian(o), newErrands(o, func(context.Context, func(*state)) error { return nil })
	return s
}

// learnt tells whoever waits for it that all is known by now: the log and the
// configuration as they were at the start, or that the log is not to be
// trusted.
func (s *state) learnt() {
	if s.knows != nil && s.configured && s.reported && s.rolledOut && s.calendarsSeen && (s.alarm != nil || s.ledger.LastSeq >= s.last) {
		close(s.knows)
		s.knows, s.stale = nil, true
	}
}

// loop takes one event after the other and decides after each that has changed
// something.
func (s *state) loop(ctx context.Context, posted <-chan func(*state), in *inbox) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			s.keep()
			s.tasks.dropAll()
			return
		case f := <-posted:
			f(s)
		case <-in.some:
			s.hear(in.take())
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
		s.due = later(s.decide(ctx), s.Now())
		timer.Reset(s.due.Sub(s.Now()))
	}
}

// fold takes in a record of the log.
func (s *state) fold(ctx context.Context, r message.Record) {
	if r.Seq <= s.ledger.LastSeq {
		return // Whoever follows a log anew may get a record twice.
	}
	s.noteTrimmable(r)
	if err := s.Guard.See(r); err != nil {
		s.raise(err)
		return
	}
	if s.keepAt.IsZero() {
		s.keepAt = s.Now().Add(keepAfter)
	}
	s.clock.fold(r, s.Now(), r.Seq > s.startedAt)
	if err := s.ledger.Fold(r); err != nil {
		s.Logger.Warn("record ignored", "tenant", s.Tenant, "record", r.Seq, "host", r.Host, "reason", err)
	} else {
		s.folded(ctx, r)
	}
	if r.Kind != message.ReplyRecord {
		s.stuckSince = time.Time{} // The log takes what a controller writes.
	}
	if current := s.ledger.Current(); r.Seq == s.startedAt && current != nil {
		s.takeUp(ctx, current)
	}
	s.learnt()
	s.changed()
}

// raise stops all runs until somebody has looked at the log.
func (s *state) raise(err error) {
	if s.alarm == nil {
		s.alarm = fmt.Errorf("%w; no command is sent any more: compare the log with a backup, and only when you are sure that it is right "+
			"remove the guard file of tenant %s and start the agent again", err, s.Tenant)
		s.Logger.Error("ALARM", "tenant", s.Tenant, "error", s.alarm)
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
	case s.ledger.LastSeq < s.last:
		return fmt.Errorf("%w: it is still reading the log", run.ErrNotReady)
	}
	return nil
}

// stuckAfter is how long the log may take no record before the controller says
// that it is not ready.
const stuckAfter = 30 * time.Second

// serving returns why the controller cannot do its work, for those who watch
// over it.
func (s *state) serving() error {
	if s.alarm == nil && !s.stuckSince.IsZero() && s.Now().Sub(s.stuckSince) >= stuckAfter {
		return fmt.Errorf("%w: the log has taken no record since %s: %w", run.ErrNotReady, s.stuckSince.UTC().Format(time.RFC3339), s.stuck)
	}
	if s.alarm != nil {
		return s.ready()
	}
	return nil
}

// decide does what has to be done now and returns when to look again if
// nothing happens before.
func (s *state) decide(ctx context.Context) time.Time {
	now := s.Now()
	if now.Before(s.looked) {
		s.setBack(now)
	}
	s.listen(now)
	s.looked = now
	if !s.keepAt.IsZero() && !now.Before(s.keepAt) {
		s.keep()
	}
	wake := earlier(earlier(now.Add(longestSleep), s.keepAt), s.present.next())
	s.rekeep(now)
	wake = earlier(wake, s.rekeepAt)
	if s.knows != nil || s.ready() != nil {
		return wake // What is half read would be taken for what is.
	}
	if now.Before(s.retryAt) {
		return earlier(wake, s.retryAt)
	}
	tried := s.retryAt
	next := s.act(ctx, now)
	if s.retryAt.Equal(tried) {
		s.unstuck()
	}
	return earlier(wake, next)
}

// setBack forgets what was to be waited for by a clock that has been set back
// since: it would be waited for until the time comes again.
func (s *state) setBack(now time.Time) {
	s.started, s.joined, s.retryAt, s.trimAt, s.lookBackAt = now, now, time.Time{}, time.Time{}, time.Time{}
	s.due, s.judgeAt = time.Time{}, time.Time{}
	if !s.keepAt.IsZero() {
		s.keepAt = now
	}
	if !s.stuckSince.IsZero() {
		s.stuckSince = now
	}
	if !s.rekeepAt.IsZero() {
		s.rekeepAt = now
	}
}

// act does what the log and the time call for, and returns when to look again.
func (s *state) act(ctx context.Context, now time.Time) time.Time {
	if newest := s.ledger.Newest(); newest != nil {
		if retryAt, wrote := s.attend(ctx, newest); wrote {
			return retryAt
		}
	}
	if current := s.ledger.Current(); current != nil {
		return s.drive(ctx, current, now)
	}
	if e, some := s.missed(now); some {
		s.Logger.Warn("a window was missed", "tenant", s.Tenant, "opened", e.Window, "closed", e.NotAfter, "reason", e.Reason)
		return s.append(ctx, message.Record{Kind: message.EventRecord, Body: e.Encode()}, e.Event)
	}
	next := s.openWhenDue(ctx, now)
	if s.ledger.LastSeq < s.last {
		return next // A run is being opened.
	}
	if at := s.trimWhenDue(ctx, now); next.IsZero() || !at.IsZero() && at.Before(next) {
		return at
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}

// keep has the guard remember how far the log is known. That it cannot write
// is no alarm: the log is still the one that was there before.
func (s *state) keep() {
	s.keepAt = time.Time{}
	if s.alarm != nil {
		return
	}
	err := s.Guard.Keep()
	s.guarding.Note(s.Logger, s.Now(), err, "the guard of the log is behind; trying again", "the guard of the log is kept again", "tenant", s.Tenant)
	if err != nil {
		s.keepPause = min(max(2*s.keepPause, keepAfter), longestPause)
		s.keepAt = s.Now().Add(s.keepPause)
		return
	}
	s.keepPause = 0
}

// changed has whoever watches look again, and the loop decide again.
func (s *state) changed() {
	s.stale = true
	s.notify()
}

// notify tells whoever watches that something has changed.
func (s *state) notify() {
	s.shown = nil
	for watcher := range s.watchers {
		wake(watcher)
	}
}
