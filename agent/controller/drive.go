package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// attend writes down what people want of the newest run, be it over or not: what
// they ask, and the hosts that they have deleted. It reports whether there was
// anything to write, and when to try again if that failed.
func (s *state) attend(ctx context.Context, newest *run.State) (retryAt time.Time, wrote bool) {
	if retryAt, wrote = s.decideRequests(ctx, newest); wrote {
		return retryAt, true
	}
	if e, some := s.deleted(newest); some {
		return s.appendEvent(ctx, newest, e), true
	}
	return time.Time{}, false
}

// drive takes the next step of the run under way: first it brings the log up
// to what is known beside it, then it does what the run says.
func (s *state) drive(ctx context.Context, current *run.State, now time.Time) time.Time {
	if !s.gathered(current, now) {
		return s.started.Add(settle)
	}
	if now.Before(s.judgeAt) {
		return s.judgeAt
	}
	for _, fact := range []func(*run.State) (message.Event, bool){s.silence, s.freezes, s.held, s.ran} {
		if e, some := fact(current); some {
			return s.appendEvent(ctx, current, e)
		}
	}
	ahead := s.clock.ahead(now)
	step := current.Next(now.Add(ahead))
	switch step.Act {
	case run.Send:
		return s.appendCommand(ctx, current, step.Command)
	case run.Note:
		return s.appendEvent(ctx, current, step.Event)
	case run.Wait:
		s.syncFleet(ctx, step)
	}
	if step.Until.IsZero() {
		return step.Until
	}
	return step.Until.Add(-ahead)
}

func (s *state) appendCommand(ctx context.Context, current *run.State, c message.Command) time.Time {
	kind := message.CommandHost
	if c.Action == message.Prepare {
		kind = message.CommandAll
	}
	return s.append(ctx, message.Record{Kind: kind, Host: c.Host, Run: current.ID, Body: c.Encode()}, string(c.Action))
}

func (s *state) appendEvent(ctx context.Context, current *run.State, e message.Event) time.Time {
	return s.append(ctx, message.Record{Kind: message.EventRecord, Run: current.Key(), Body: e.Encode()}, e.Event)
}

// append writes a record and has the next decision wait until it came back
// through the log, so that all is folded in the log's order. The label says
// what it is.
func (s *state) append(ctx context.Context, r message.Record, label string) time.Time {
	s.At("before " + label)
	seq, err := s.write(ctx, r, label)
	if err == nil {
		s.At("after " + label)
		s.last = seq
		s.unstuck()
		return time.Time{}
	}
	s.stuck = err
	if s.stuckSince.IsZero() && !errors.Is(err, log.ErrBehind) {
		s.stuckSince = s.Now()
		s.notify()
	}
	s.catchUp(ctx, err)
	s.pause = min(max(2*s.pause, firstPause), longestPause)
	s.retryAt = s.Now().Add(s.pause)
	return s.retryAt
}

// write appends a record. What opens a run depends on who is not well, and so
// on every answer before it.
func (s *state) write(ctx context.Context, r message.Record, label string) (seq uint64, err error) {
	if label == message.Opened {
		seq, err = s.Log.AppendNext(ctx, r, s.ledger.LastCommand, s.ledger.LastSeq)
	} else {
		seq, err = s.Log.Append(ctx, r, s.ledger.LastCommand)
	}
	if !errors.Is(err, log.ErrBehind) {
		s.writing.Note(s.Logger, s.Now(), err, "cannot write to the log; trying again", "the log can be written to again", "tenant", s.Tenant)
	}
	return seq, err
}

// unstuck notes that a record was written, or that none has to be any more.
func (s *state) unstuck() {
	s.pause, s.retryAt, s.stuckSince = 0, time.Time{}, time.Time{}
}

// catchUp has the next decision wait for what is on the log already: after
// ErrBehind there is a command that was not seen, and after any other error
// the record itself may be there.
func (s *state) catchUp(ctx context.Context, cause error) {
	last, err := s.Log.Last(ctx)
	s.asking.Note(s.Logger, s.Now(), err, "cannot ask for the end of the log; trying again", "the end of the log can be asked for again", "tenant", s.Tenant)
	if err != nil {
		return
	}
	if errors.Is(cause, log.ErrBehind) {
		s.Logger.Info("another controller has written to the log", "tenant", s.Tenant, "last", last)
	}
	s.last = max(s.last, last)
}

func sortedHosts(e message.Event) message.Event {
	slices.Sort(e.Hosts)
	return e
}
