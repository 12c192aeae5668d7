package controller

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// next returns the next decision of the newest run of an environment, and the request that this decision
// carries out; nil for none. It refuses the earlier requests that cannot be carried out.
func (s *state) next(env *environment, now time.Time) (run.Decision, *request) {
	for {
		q := s.nextRequest(env)
		if event := s.releasesLock(q); event != nil {
			return run.Decision{Act: run.Note, Event: event}, q
		}
		ahead := s.clock.ahead(now)
		decision := env.ledger.Next(now.Add(ahead), s.seen(env, now, q))
		if !decision.Until.IsZero() {
			decision.Until = decision.Until.Add(-ahead)
		}
		if decision.Act != run.Refuse {
			return decision, q
		}
		q.refused = decision.Refused
	}
}

// seen gathers what the controller knows from sources other than the log, and leaves out what
// the run knows already.
func (s *state) seen(env *environment, now time.Time, q *request) run.Seen {
	seen := run.Seen{Deleted: s.hosts.deleted}
	if q != nil {
		seen.Request = &q.Request
	}
	if env.ledger.Key() == 0 {
		return seen
	}
	current := env.ledger.Current()
	if current != nil {
		seen.Neighbours = s.neighbours(current, env.strangers(&s.hosts, &s.ledger))
	}
	seen.Silent, seen.Heard = env.news(&s.hosts, seen.Neighbours)
	if current == nil {
		return seen
	}
	seen.Budgets = s.editedBudgets(current.Rollout().Absent)
	if at := s.judgeAt(env, current, now); now.Before(at) {
		seen.JudgeAt = at.Add(s.clock.ahead(now))
	}
	if freeze, found := s.intent.nextFreeze(s.clock.forFreezes(now)); found {
		seen.Freeze = &message.Frozen{Freeze: message.CleanText(freezeName(freeze)), NotAfter: freeze.Start, Until: freeze.End}
	}
	seen.Withdrawn = s.intent.withdrawn(current.Release)
	seen.Hold = cmp.Or(s.intent.hold(env.name), s.witnesses.hold(s.hosts.present.online))
	seen.Busy, seen.HostOf = s.hosts.busy, s.stepHost(env)
	seen.Doing = func(host string) string {
		member, _ := current.Host(host)
		return s.hosts.told(current, member).Doing()
	}
	seen.Outcomes = env.tasks.news(current)
	seen.Differing, seen.Comparing = env.compared.known(current)
	seen.Answers = s.answers(now)
	return seen
}

// judgeAt is when the controller can tell which hosts are silent and which have taken too long:
// after a start, once every host has had time to send a heartbeat; after its process was
// suspended, once it has read what hosts sent in the meantime.
func (s *state) judgeAt(env *environment, current *run.State, now time.Time) time.Time {
	if !s.hasGathered(env, current, now) {
		return s.started.Add(gracePeriod)
	}
	return s.hosts.stall.judgeAt
}

// take carries out a decision of the newest run of an environment, and returns when to look again.
func (s *state) take(ctx context.Context, env *environment, now time.Time, decision run.Decision, q *request) time.Time {
	switch decision.Act {
	case run.Send:
		return s.append(ctx, commandEntry(env.ledger, decision.Command))
	case run.Note:
		id := env.ledger.Key()
		if message.OfNoRun(decision.Event) {
			id = 0
		}
		retryAt := s.append(ctx, eventEntry(id, decision.Event))
		switch {
		case q == nil:
		case retryAt.IsZero():
			s.written(q, s.log.last)
		case !errors.Is(s.log.failed, log.ErrBehind):
			q.tried = message.EncodeEvent(decision.Event)
		}
		return retryAt
	case run.Wait:
		if current := env.ledger.Current(); current != nil && !now.Before(s.judgeAt(env, current, now)) {
			env.tasks.syncRun(ctx, current, decision)
		}
		if changed := !slices.Equal(env.asks, decision.Ask); changed || len(decision.Ask) > 0 {
			env.asks, env.asksOf = decision.Ask, env.ledger.Current()
			if changed {
				s.show()
			}
		}
		s.tellRefusal(env, now)
		return times.Sooner(decision.Until, s.askQueries(ctx, decision.Ask, now))
	case run.Refuse: // next has refused the request already.
	}
	return decision.Until
}

// undecided are the requests that are not decided and whose callers still wait, in the order in
// which they came.
func (s *state) undecided() iter.Seq[*request] {
	return func(yield func(*request) bool) {
		for _, w := range s.waiters {
			if q := w.request; q != nil && q.seq == 0 && q.refused == nil && w.ctx.Err() == nil && !yield(q) {
				return
			}
		}
	}
}

// nextRequest returns the first undecided request of an environment; nil if there is none.
func (s *state) nextRequest(env *environment) *request {
	for q := range s.undecided() {
		if q.of == env {
			return q
		}
	}
	return nil
}

// written records that the event of a request is on the log.
func (s *state) written(q *request, seq uint64) {
	logger := s.Logger.With("tenant", s.Tenant, "run", q.of.ledger.Key(), "by", q.By, "reason", q.Why)
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
func (s *state) recognize(env *environment, r message.Record) {
	if q := s.nextRequest(env); q != nil && r.Kind == message.EventRecord && q.tried != nil && bytes.Equal(r.Body, q.tried) {
		s.written(q, r.Seq)
	}
}
