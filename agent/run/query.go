package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// A disruption budget may have a query beside its number, which has to be answered well before one of
// its hosts leaves service. The answer is no record of the log: a controller that starts asks anew, and
// without an answer no host leaves service.

// Answer is what the query of a disruption budget has returned.
type Answer struct {
	// Valid means that the answer counts now: it is not too old.
	Valid bool
	// Refused says for people why no host may leave service by the last answer; empty if one may.
	// Since is since when it keeps them in service, or since when it is being asked.
	Refused string
	Since   time.Time
}

// refusalIsNews is for how long a query refuses before people are told: one that allows it when it is
// asked again needs nobody.
const refusalIsNews = 30 * time.Second

// Waiting is the wait for the answer to the query of a budget, or for a better one.
func (a Answer) Waiting(budget string) Waiting {
	return Waiting{What: ForBudget, Detail: a.detail(budget), Since: a.Since, Budget: budget}
}

// detail says what whoever waits for the query of a budget waits for.
func (a Answer) detail(budget string) string {
	return fmt.Sprintf("budget %s to allow it: %s", budget, cmp.Or(a.Refused, "its query is not answered yet"))
}

// NotAllowed returns the first of the budgets that a decision asks for whose query keeps hosts in
// service, and its answer; false when none does.
func NotAllowed(ask []string, answers map[string]Answer) (budget string, a Answer, some bool) {
	for _, budget := range ask {
		if a, asks := answers[budget]; asks && !a.allows() {
			return budget, a, true
		}
	}
	return "", Answer{}, false
}

// IsBlockedBy reports whether people are to know that the run waits for an answer: no host is under
// way, and the query has refused for a while.
func (s *State) IsBlockedBy(a Answer, now time.Time) bool {
	return s.counts.underWay == 0 && a.Refused != "" && !now.Before(a.Since.Add(refusalIsNews))
}

// allows reports whether a host may leave service by the answer.
func (a Answer) allows() bool { return a.Valid && a.Refused == "" }

// answered returns a test whether no query keeps the hosts with a list of cells in service.
func (s *State) answered(answers map[string]Answer) func(set int) bool {
	return func(set int) bool {
		return !slices.ContainsFunc(s.roster.BudgetsOf(set), func(budget string) bool {
			a, asks := answers[budget]
			return asks && !a.allows()
		})
	}
}

// nextAnswered returns the host that starts next, as next does, among those that no query keeps in
// service. False means that queries have to be answered first (toAsk); until is when time alone may
// let a host start that none keeps.
func (s *State) nextAnswered(now time.Time, answers map[string]Answer) (i int, until time.Time, some bool) {
	if len(answers) == 0 {
		return s.next(), time.Time{}, true
	}
	answered := s.answered(answers)
	if i, some := s.nextReadyIf(answered); some {
		return i, time.Time{}, true
	}
	g, free := s.stages.current(), s.roster.Free(s.stages.index)
	i, some = g.firstCandidate(free, func(set int) bool { return s.roster.Admits(set) && answered(set) })
	if !some || !g.roomFor(s.members[i].HasSlot(), free) {
		return 0, time.Time{}, false
	}
	until = s.starts(i)
	return i, until, !now.Before(until)
}

// toAsk returns the budgets whose queries alone keep hosts of the current stage in service.
func (s *State) toAsk(answers map[string]Answer) (ask []string) {
	add := func(set int) {
		for _, budget := range s.roster.BudgetsOf(set) {
			if a, asks := answers[budget]; asks && !a.allows() && !slices.Contains(ask, budget) {
				ask = append(ask, budget)
			}
		}
	}
	for _, t := range s.queues[ready] {
		if !t.isVoid(s.members) && !s.members[t.host].HasSlot() && s.roster.MayLeave(t.host) {
			add(s.members[t.host].SetOf())
		}
	}
	for set, q := range s.stages.current().candidates.unheld {
		if len(q) > 0 && s.roster.Admits(set) {
			add(set)
		}
	}
	slices.Sort(ask)
	return ask
}

// addRefusals adds to the end of a run that leaves hosts behind which queries have kept them in service.
func (s *State) addRefusals(d Decision, answers map[string]Answer) Decision {
	e, ends := d.Event.(message.Finished)
	if !ends || len(answers) == 0 {
		return d
	}
	for _, budget := range s.toAsk(answers) {
		if a := answers[budget]; a.Refused != "" {
			e.Reason = message.CleanText(strings.TrimSuffix(e.Reason, ".") + "; the run was waiting for " + a.detail(budget))
		}
	}
	d.Event = e
	return d
}
