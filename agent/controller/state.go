package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// state is all that a controller knows. Only the goroutine of Run touches it.
type state struct {
	Options
	ledger  run.Ledger
	config  *v1.OSUpgrade
	windows []window.Window
	// revision is how far the configuration was read, reports how far the
	// versions were, and reported tells that those of the start are all seen.
	revision, reports mark
	reported          bool
	hosts             map[string]*host
	versions          map[string]reported
	keeper            *keeper
	// started is when the controller began, joined when a host was first
	// heard of that was not known.
	started, joined time.Time
	// last is the sequence up to which the log must be folded before the next
	// decision: what stood there at the start, and what was appended since.
	last uint64
	// pause is the wait before a failed append is tried again, retryAt its end.
	pause   time.Duration
	retryAt time.Time
	// alarm is why no command may be sent any more; nil when all is well.
	alarm error
	// keepAt is when the guard is to be kept; zero when it is. keepPause is the
	// wait after it could not be.
	keepAt    time.Time
	keepPause time.Duration
	// stale tells that something has changed since the last decision.
	stale    bool
	watchers map[chan struct{}]bool
	openings []opening
	// shown is the newest run as it was shown since the last change, so that
	// many who watch cost one view; nil when it was not.
	shown *v1.Run
	// configured tells that the configuration was seen; knows is closed when
	// all is known that was there at the start.
	configured bool
	knows      chan struct{}
}

const (
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
	return &state{
		Options: o, hosts: map[string]*host{}, versions: map[string]reported{}, keeper: k, started: o.Now(),
		watchers: map[chan struct{}]bool{}, knows: knows,
	}
}

// learnt tells whoever waits for it that all is known by now: the log and the
// configuration as they were at the start, or that the log is not to be
// trusted.
func (s *state) learnt() {
	if s.knows != nil && s.configured && s.reported && (s.alarm != nil || s.ledger.LastSeq >= s.last) {
		close(s.knows)
		s.knows = nil
	}
}

// loop takes one event after the other and decides after each that has changed
// something.
func (s *state) loop(ctx context.Context, asked <-chan func(*state), in *inbox) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			s.keep()
			return
		case f := <-asked:
			f(s)
		case <-in.some:
			s.hear(in.take())
		case <-timer.C:
			s.stale = true
		}
		s.refresh(ctx, timer)
	}
}

// refresh decides when something has changed, and sets the timer for when to
// look again if nothing does.
func (s *state) refresh(ctx context.Context, timer *time.Timer) {
	if s.stale {
		s.stale = false
		timer.Reset(s.decide(ctx).Sub(s.Now()))
	}
}

// fold takes in a record of the log.
func (s *state) fold(r message.Record) {
	if err := s.Guard.See(r); err != nil {
		s.raise(err)
		return
	}
	if s.keepAt.IsZero() {
		s.keepAt = s.Now().Add(keepAfter)
	}
	if err := s.ledger.Fold(r); err != nil {
		s.Logger.Warn("record ignored", "tenant", s.Tenant, "record", r.Seq, "host", r.Host, "reason", err)
	}
	s.answerOpenings()
	s.learnt()
	s.changed()
}

// raise stops all runs until somebody has looked at the log.
func (s *state) raise(err error) {
	if s.alarm == nil {
		s.alarm = fmt.Errorf("%w; no command is sent any more: compare the log with a backup, and only when you are sure that it is right "+
			"remove the guard file of tenant %s and start the agent again", err, s.Tenant)
		s.Logger.Error("ALARM", "tenant", s.Tenant, "error", s.alarm)
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

// decide does what has to be done now and returns when to look again if
// nothing happens before.
func (s *state) decide(ctx context.Context) time.Time {
	now := s.Now()
	if !s.keepAt.IsZero() && !now.Before(s.keepAt) {
		s.keep()
	}
	wake := earlier(now.Add(longestSleep), s.keepAt)
	if s.ready() != nil {
		return wake
	}
	if now.Before(s.retryAt) {
		return earlier(wake, s.retryAt)
	}
	var next time.Time
	if current := s.ledger.Current(); current != nil {
		next = s.drive(ctx, current, now)
	} else {
		next = s.openWhenDue(ctx, now)
	}
	return earlier(wake, next)
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
	if err := s.Guard.Keep(); err != nil {
		s.keepPause = min(max(2*s.keepPause, keepAfter), longestPause)
		s.keepAt = s.Now().Add(s.keepPause)
		s.Logger.Warn("the guard of the log is behind; trying again", "tenant", s.Tenant, "error", err)
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
