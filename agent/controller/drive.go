package controller

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
)

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
		if e, some := s.recovered(step.Silent, now); some {
			s.Logger.Info("silent hosts hold no slot any more", "tenant", s.Tenant, "run", current.Key(), "hosts", len(e.Hosts), "reason", e.Reason)
			return s.append(ctx, message.Record{Kind: message.EventRecord, Run: current.Key(), Body: e.Encode()})
		}
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
