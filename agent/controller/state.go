package controller

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// state is all that a controller knows. Only the goroutine of Run touches it.
type state struct {
	Options
	ledger  run.Ledger
	config  *v1.OSUpgrade
	windows []window.Window
	// revision is the number of the configuration's revision that was seen
	// last, and awaited who waits for one.
	revision uint64
	awaited  []awaiting
	hosts    map[string]*host
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
	// keepAt is when the guard is to be kept; zero when it is.
	keepAt   time.Time
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
	// firstPause and longestPause bound the wait after a failed append.
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
)

func newState(o Options, knows chan struct{}) *state {
	return &state{Options: o, hosts: map[string]*host{}, started: o.Now(), watchers: map[chan struct{}]bool{}, knows: knows}
}

// learnt tells whoever waits for it that all is known by now: the log and the
// configuration as they were at the start, or that the log is not to be
// trusted.
func (s *state) learnt() {
	if s.knows != nil && s.configured && (s.alarm != nil || s.ledger.LastSeq >= s.last) {
		close(s.knows)
		s.knows = nil
	}
}

// loop takes one event after the other and decides after each.
func (s *state) loop(ctx context.Context, asked <-chan func(*state)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			s.keep()
			return
		case f := <-asked:
			f(s)
		case <-timer.C:
		}
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
	if r.Kind == message.VersionsRecord {
		s.foldVersions(r)
	}
	s.answerOpenings()
	s.learnt()
	s.notify()
}

// raise stops all runs until somebody has looked at the log.
func (s *state) raise(err error) {
	if s.alarm == nil {
		s.Logger.Error("ALARM: no command is sent any more", "tenant", s.Tenant, "error", err)
		s.alarm = err
		s.learnt()
		s.notify()
	}
}

// ready returns why nothing can be decided now.
func (s *state) ready() error {
	switch {
	case s.alarm != nil:
		return errors.Join(run.ErrNotReady, s.alarm)
	case s.ledger.LastSeq < s.last:
		return errors.Join(run.ErrNotReady, errors.New("it is still reading the log"))
	}
	return nil
}

// decide does what has to be done now and returns when to look again if
// nothing happens before.
func (s *state) decide(ctx context.Context) time.Time {
	now := s.Now()
	wake := now.Add(longestSleep)
	if !s.keepAt.IsZero() {
		if !now.Before(s.keepAt) {
			s.keep()
		} else {
			wake = s.keepAt
		}
	}
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

// drive takes the next step of the run under way.
func (s *state) drive(ctx context.Context, current *run.State, now time.Time) time.Time {
	step := current.Next(now)
	switch step.Act {
	case run.Send:
		kind := message.CommandHost
		if step.Command.Action == message.Prepare {
			kind = message.CommandAll
		}
		return s.append(ctx, message.Record{Kind: kind, Host: step.Command.Host, Run: current.ID, Body: step.Command.Encode()})
	case run.Finish:
		return s.append(ctx, message.Record{Kind: message.EventRecord, Run: current.Key(), Body: step.Event.Encode()})
	case run.Wait:
	}
	return step.Until
}

// append writes a record and has the next decision wait until it came back
// through the log, so that all is folded in the log's order.
func (s *state) append(ctx context.Context, r message.Record) time.Time {
	seq, err := s.Log.Append(ctx, r, s.ledger.LastCommand)
	if err == nil {
		s.last, s.pause, s.retryAt = seq, 0, time.Time{}
		return time.Time{}
	}
	s.Logger.Warn("cannot write to the log; trying again", "tenant", s.Tenant, "error", err)
	s.catchUp(ctx, err)
	s.pause = min(max(2*s.pause, firstPause), longestPause)
	s.retryAt = s.Now().Add(s.pause)
	return s.retryAt
}

// catchUp has the next decision wait for what is on the log already: after
// ErrBehind there is a command that was not seen, and after any other error
// the record itself may be there.
func (s *state) catchUp(ctx context.Context, cause error) {
	last, err := s.Log.Last(ctx)
	if err != nil {
		s.Logger.Warn("cannot ask for the end of the log", "tenant", s.Tenant, "error", err)
		return
	}
	if errors.Is(cause, topic.ErrBehind) {
		s.Logger.Info("another controller has written to the log", "tenant", s.Tenant, "last", last)
	}
	s.last = max(s.last, last)
}

func (s *state) keep() {
	s.keepAt = time.Time{}
	if s.alarm != nil {
		return
	}
	if err := s.Guard.Keep(); err != nil {
		s.raise(err)
	}
}

// notify tells whoever watches that something has changed.
func (s *state) notify() {
	s.shown = nil
	for watcher := range s.watchers {
		select {
		case watcher <- struct{}{}:
		default:
		}
	}
}
