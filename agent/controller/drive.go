package controller

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// next returns the next step of the newest run, and the request that this step carries out; nil
// for none. It refuses the earlier requests that cannot be carried out.
func (s *state) next(now time.Time) (run.Step, *request) {
	for {
		q := s.nextRequest()
		ahead := s.clock.ahead(now)
		step := s.ledger.Next(now.Add(ahead), s.seen(now, q))
		if !step.Until.IsZero() {
			step.Until = step.Until.Add(-ahead)
		}
		if step.Act != run.Refuse {
			return step, q
		}
		q.refused = step.Refused
	}
}

// seen gathers what the controller knows from sources other than the log, and leaves out what
// the run knows already.
func (s *state) seen(now time.Time, q *request) run.Seen {
	seen := run.Seen{Deleted: s.hosts.deleted}
	if q != nil {
		seen.Request = &q.Request
	}
	newest := s.ledger.Newest()
	if newest == nil {
		return seen
	}
	current := s.ledger.Current()
	if current != nil {
		seen.Neighbours = s.neighbours(current, s.hosts.strangers(current))
	}
	seen.Silent, seen.Heard = s.hosts.news(newest, seen.Neighbours)
	if current == nil {
		return seen
	}
	seen.Budgets = s.editedBudgets(current)
	if at := s.judgeAt(current, now); now.Before(at) {
		seen.JudgeAt = at.Add(s.clock.ahead(now))
	}
	if freeze, found := s.intent.nextFreeze(s.clock.forFreezes(now)); found {
		seen.Freeze = &message.Frozen{Freeze: message.CleanText(freezeName(freeze)), NotAfter: freeze.Start, Until: freeze.End}
	}
	seen.Hold = cmp.Or(s.intent.hold(), s.witnesses.hold(s.hosts.present.online))
	seen.Busy = s.hosts.busy
	seen.Doing = func(host string) string {
		member, _ := current.Host(host)
		return s.hosts.told(current, member).Doing()
	}
	seen.Outcomes = s.tasks.news(current)
	return seen
}

// judgeAt is when the controller can tell which hosts are silent and which have taken too long:
// after a start, once every host has had time to send a heartbeat; after its process was
// suspended, once it has read what hosts sent in the meantime.
func (s *state) judgeAt(current *run.State, now time.Time) time.Time {
	if !s.hasGathered(current, now) {
		return s.started.Add(gracePeriod)
	}
	return s.hosts.stall.judgeAt
}

// take carries out a step of the newest run, and returns when to look again.
func (s *state) take(ctx context.Context, now time.Time, step run.Step, q *request) time.Time {
	newest := s.ledger.Newest()
	switch step.Act {
	case run.Send:
		return s.append(ctx, commandEntry(newest, step.Command))
	case run.Note:
		id := newest.Key()
		if message.OfNoRun(step.Event) {
			id = 0
		}
		retryAt := s.append(ctx, eventEntry(id, step.Event))
		switch {
		case q == nil:
		case retryAt.IsZero():
			s.written(newest, q, s.log.last)
		case !errors.Is(s.log.failed, log.ErrBehind):
			q.tried = message.EncodeEvent(step.Event)
		}
		return retryAt
	case run.Wait:
		if current := s.ledger.Current(); current != nil && !now.Before(s.judgeAt(current, now)) {
			s.tasks.syncFleet(ctx, step)
		}
	case run.Refuse: // next has refused the request already.
	}
	return step.Until
}

// nextRequest returns the first undecided request whose caller still waits; nil if there is
// none.
func (s *state) nextRequest() *request {
	for _, w := range s.waiters {
		if q := w.request; q != nil && q.seq == 0 && q.refused == nil && w.ctx.Err() == nil {
			return q
		}
	}
	return nil
}

// written records that the event of a request is on the log.
func (s *state) written(current *run.State, q *request, seq uint64) {
	logger := s.Logger.With("tenant", s.Tenant, "run", current.Key(), "by", q.By, "reason", q.Why)
	switch q.Ask {
	case run.Approve:
		logger = logger.With("stage", q.Stage)
	case run.Release:
		logger = logger.With("host", q.Host)
	case run.Pause, run.Resume, run.Abort:
	}
	logger.Info("request accepted: " + string(q.Ask))
	q.seq = seq
}

// recognize finds the event of a request on the log although its append seemed to fail. Without
// it the request would be decided again, and refused because of its own event.
func (s *state) recognize(current *run.State, r message.Record) {
	if q := s.nextRequest(); q != nil && r.Kind == message.EventRecord && q.tried != nil && bytes.Equal(r.Body, q.tried) {
		s.written(current, q, r.Seq)
	}
}
