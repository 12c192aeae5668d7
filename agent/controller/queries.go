package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// answerCounts is how long hosts may leave service by one answer to a query.
	answerCounts = 15 * time.Second
	// refusalCounts is how long a query that keeps hosts in service is not asked again.
	refusalCounts = 30 * time.Second
)

// queries asks the queries of the disruption budgets, beside the loop, and keeps the last answer to each.
// It keeps nothing on disk: after a restart they are asked anew.
type queries struct {
	Options
	// post has a function run in the loop.
	post func(context.Context, func())
	of   map[string]*query
}

// query is what is known of the query of a disruption budget.
type query struct {
	rollout.Query
	// asking tells that it is being asked.
	asking bool
	// answeredAt is when it was answered last, zero when it was not; refused is why the answer keeps
	// hosts in service, empty if it does not. since is since when it does, or has never been answered.
	answeredAt time.Time
	refused    string
	since      time.Time
}

func newQueries(o Options, post func(context.Context, func())) *queries {
	return &queries{Options: o, post: post, of: map[string]*query{}}
}

// known returns what is known of the query of a budget. An edited query is another one, and so is one
// that nobody has needed for a while.
func (q *queries) known(b plan.Budget, now time.Time) *query {
	known := q.of[b.Name]
	if known == nil || known.Query != *b.Prometheus || known.isForgotten(now) {
		known = &query{Query: *b.Prometheus}
		q.of[b.Name] = known
	}
	return known
}

// forget has all queries asked anew: the clock was set back.
func (q *queries) forget() { clear(q.of) }

// validUntil is until when the last answer counts; zero when there is none.
func (q *query) validUntil() time.Time {
	switch {
	case q.answeredAt.IsZero():
		return time.Time{}
	case q.refused != "":
		return q.answeredAt.Add(refusalCounts)
	}
	return q.answeredAt.Add(answerCounts)
}

// isValid reports whether the last answer counts at a time.
func (q *query) isValid(now time.Time) bool {
	return !q.answeredAt.IsZero() && now.Before(q.validUntil())
}

// isForgotten reports whether the last answer says nothing of what is so now: it has not counted for a
// while, and nobody has asked again.
func (q *query) isForgotten(now time.Time) bool {
	return !q.asking && !q.answeredAt.IsZero() && !now.Before(q.validUntil().Add(refusalCounts))
}

// answer is the last answer to the query.
func (q *query) answer(now time.Time) run.Answer {
	a := run.Answer{Valid: q.isValid(now), Since: q.since}
	if q.refused != "" {
		a.Refused = fmt.Sprintf("%s (query %s at %s)", q.refused, strings.Join(strings.Fields(q.Query.Query), " "), q.URL)
	}
	return a
}

// answers are the last answers to the queries of the budgets that have one; nil if none has.
func (s *state) answers(now time.Time) map[string]run.Answer {
	var answers map[string]run.Answer
	for _, b := range s.intent.budgets {
		if b.Prometheus == nil {
			continue
		}
		if answers == nil {
			answers = map[string]run.Answer{}
		}
		answers[b.Name] = s.queries.known(b, now).answer(now)
	}
	return answers
}

// askQueries asks the queries of budgets whose last answers do not count any more, and returns when the
// next one is to be asked again: whoever waits for an answer that comes before is told.
func (s *state) askQueries(ctx context.Context, budgets []string, now time.Time) (again time.Time) {
	for _, b := range s.intent.budgets {
		if b.Prometheus == nil || !slices.Contains(budgets, b.Name) {
			continue
		}
		switch known := s.queries.known(b, now); {
		case known.asking:
		case known.isValid(now):
			again = times.Sooner(again, known.validUntil())
		default:
			if known.asking = true; known.answeredAt.IsZero() {
				known.since = now
			}
			go s.queries.ask(ctx, b.Name, known, s.queryAnswered)
		}
	}
	return again
}

// ask asks a query, and tells the loop.
func (q *queries) ask(ctx context.Context, budget string, known *query, told func(string, *query, error)) {
	err := errors.New("this site asks no queries")
	if q.Ask != nil {
		err = q.Ask(ctx, known.Check())
	}
	if ctx.Err() == nil {
		q.post(ctx, func() { told(budget, known, err) })
	}
}

// queryAnswered takes up the answer to a query, and has all who may wait for it look again.
func (s *state) queryAnswered(budget string, known *query, err error) {
	now, before := s.Now(), known.refused
	known.asking, known.answeredAt, known.refused = false, now, ""
	if err != nil {
		known.refused = err.Error()
	}
	if known.refused == "" || before == "" {
		known.since = now
	}
	logger := s.Logger.With("tenant", s.Tenant, "budget", budget)
	switch {
	case err != nil && before == "":
		logger.Warn("the query of a disruption budget keeps hosts in service", "error", err)
	case err == nil && before != "":
		logger.Info("the query of a disruption budget keeps no host in service any more")
	}
	s.changed()
}

// notAllowed returns the budget whose query keeps the hosts of a run in service, and its answer; false
// when none does.
func (s *state) notAllowed(env *environment, r *run.State, now time.Time) (budget string, a run.Answer, some bool) {
	if r == nil || len(env.asks) == 0 || env.asksOf != r {
		return "", run.Answer{}, false
	}
	return run.NotAllowed(env.asks, s.answers(now))
}

// tellRefusal tells people of a query that keeps the hosts of a run in service for a while.
func (s *state) tellRefusal(env *environment, now time.Time) {
	current := env.ledger.Current()
	if budget, a, some := s.notAllowed(env, current, now); some {
		s.news.put(s.ledger.LastSeq, env.teller.Refused(current, budget, a, now)...)
	}
}

// budgetRefusals shows the queries that keep hosts in service, by budget.
func (s *state) budgetRefusals(now time.Time) (all []v1.BudgetRefusal) {
	for _, b := range s.intent.budgets {
		if b.Prometheus == nil {
			continue
		}
		if a := s.queries.known(b, now).answer(now); a.Refused != "" {
			all = append(all, v1.BudgetRefusal{Budget: b.Name, Since: view.Time(a.Since), Reason: a.Refused})
		}
	}
	return all
}

// refusalsTurn is when time alone changes which queries are shown to refuse: an answer is forgotten.
// Zero means that it does not.
func (s *state) refusalsTurn(now time.Time) (at time.Time) {
	for _, b := range s.intent.budgets {
		if b.Prometheus == nil {
			continue
		}
		if known := s.queries.known(b, now); known.refused != "" && !known.asking {
			at = times.Sooner(at, known.validUntil().Add(refusalCounts))
		}
	}
	return at
}

// errAwaitsAnswer means that a query has to be answered first.
var errAwaitsAnswer = errors.New("a query is not answered yet")

// allowed returns why a query keeps a host with some cells in service, or errAwaitsAnswer once it is
// asked; nil when none does.
func (s *state) allowed(ctx context.Context, cells []message.Cell, now time.Time) error {
	answers := s.answers(now)
	for _, c := range cells {
		switch a, asks := answers[c.Budget]; {
		case asks && !a.Valid:
			s.askQueries(ctx, []string{c.Budget}, now)
			return errAwaitsAnswer
		case a.Refused != "":
			return &run.Refused{Message: "no host may leave service: it waits for " + a.Waiting(c.Budget).Detail}
		}
	}
	return nil
}
