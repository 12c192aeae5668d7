package run

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// asks are the budgets that the run of basel wants to ask at once, after all that it can do at once.
func (n *timed) asks() []string {
	n.t.Helper()
	for n.next(n.now) {
	}
	return n.ledger.Of("basel").Next(n.now, n.seen).Ask
}

func (n *timed) upgrading() (hosts []string) {
	return n.ledger.Of("basel").Newest().members.at(upgrading)
}

// TestQuery checks that a host of a disruption budget with a query leaves service only by a valid answer
// that allows it, and that the hosts of no such budget go meanwhile.
func TestQuery(t *testing.T) {
	t.Parallel()
	n := newTimed(t)
	cells := []message.Cell{{Budget: "db", MaxUnavailable: 2, Hosts: []string{"a1", "a2", "a3"}}, {Budget: "web", MaxUnavailable: 9, Hosts: []string{"b1"}}}
	n.seen.Answers = map[string]Answer{"db": {}, "web": {Valid: true}}
	n.open("basel", 9, cells, "a1", "a2", "a3", "b1", "c1")
	if got := n.asks(); !reflect.DeepEqual(got, []string{"db"}) {
		t.Errorf("it asks for %v", got)
	}
	if got := n.upgrading(); !reflect.DeepEqual(got, []string{"b1", "c1"}) {
		t.Errorf("without an answer %v leave service", got)
	}
	for why, answer := range map[string]Answer{"by an old answer": {Refused: ""}, "by an old refusal": {Refused: "x"}, "by a refusal": {Valid: true, Refused: "x"}} {
		n.seen.Answers["db"] = answer
		if got := n.asks(); !reflect.DeepEqual(got, []string{"db"}) || len(n.upgrading()) != 2 {
			t.Errorf("%s %v leave service, and it asks for %v", why, n.upgrading(), got)
		}
	}
	n.seen.Answers["db"] = Answer{Valid: true}
	if got := n.asks(); len(got) != 0 {
		t.Errorf("it asks for %v", got)
	}
	if got := n.upgrading(); !reflect.DeepEqual(got, []string{"a1", "a2", "b1", "c1"}) {
		t.Errorf("by an answer %v leave service", got)
	}
	n.seen.Answers["db"] = Answer{}
	if got := n.asks(); len(got) != 0 {
		t.Errorf("it asks for %v though the budget has no place", got)
	}
}

// TestQueryBeforeLeaving checks that a host that was admitted by an answer is kept by the next one, until
// one lets it leave service.
func TestQueryBeforeLeaving(t *testing.T) {
	t.Parallel()
	n := newTimed(t)
	n.seen.Answers = map[string]Answer{"db": {Valid: true}}
	e := message.Opened{Environment: "basel", Members: []string{"a1"}, Rollout: rollout.Default(1), NotAfter: n.now.Add(time.Hour), Budgets: "v1"}
	e.Rollout.Checks.BeforeHost = []rollout.Check{{Name: "c", Type: rollout.TCP, Passes: 1, Timeout: rollout.SpanOf(time.Minute)}}
	n.openAs(e, []message.Cell{{Budget: "db", MaxUnavailable: 1, Hosts: []string{"a1"}}})
	for n.ledger.Of("basel").Newest().Count(Checking) == 0 {
		n.next(n.now)
	}
	n.seen.Answers["db"] = Answer{Valid: true, Refused: "alerts fire"}
	if got := n.asks(); !reflect.DeepEqual(got, []string{"db"}) || len(n.upgrading()) != 0 {
		t.Errorf("%v leave service, and it asks for %v", n.upgrading(), got)
	}
	n.seen.Answers["db"] = Answer{Valid: true}
	if got := n.asks(); len(got) != 0 || len(n.upgrading()) != 1 {
		t.Errorf("%v leave service, and it asks for %v", n.upgrading(), got)
	}
}

// TestQueryNotForHeld checks that a host that is out of service since an earlier run needs no answer: its
// upgrade takes nobody out of service.
func TestQueryNotForHeld(t *testing.T) {
	t.Parallel()
	n := newTimed(t)
	n.seen.Answers = map[string]Answer{"db": {}}
	e := message.Opened{Environment: "basel", Members: []string{"a1", "a2"}, Rollout: rollout.Default(2), NotAfter: n.now.Add(time.Hour), Budgets: "v1"}
	e.Rollout.Checks.AfterHost = []rollout.Check{{Name: "c", Type: rollout.TCP, Passes: 1, Timeout: rollout.SpanOf(time.Minute)}}
	e.Roster = []message.Entry{{Host: "a2", Since: n.now, Owes: message.Debt{Checks: message.AfterHost}}}
	n.openAs(e, []message.Cell{{Budget: "db", MaxUnavailable: 2, Hosts: []string{"a1", "a2"}}})
	if got := n.asks(); !reflect.DeepEqual(n.upgrading(), []string{"a2"}) || len(got) != 0 {
		t.Errorf("%v leave service, and it asks for %v", n.upgrading(), got)
	}
}

// TestQueryInReason checks that a run which ends because a query has kept its hosts in service says so.
func TestQueryInReason(t *testing.T) {
	t.Parallel()
	n := newTimed(t)
	n.seen.Answers = map[string]Answer{"db": {Refused: "3 alerts fire"}}
	n.open("basel", 1, []message.Cell{{Budget: "db", MaxUnavailable: 1, Hosts: []string{"a1"}}}, "a1")
	n.until(200 * time.Hour)
	r := n.ledger.Of("basel").Newest()
	if r.Result != TimedOut || !strings.HasSuffix(r.Reason, "; the run was waiting for budget db to allow it: 3 alerts fire") {
		t.Errorf("it ended as %s: %s", r.Result, r.Reason)
	}
}
