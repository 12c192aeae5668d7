package run

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// fleetOf is the cell of a budget that counts hosts together, and lets one of them leave service.
func fleetOf(hosts ...string) []message.Cell {
	return []message.Cell{{Budget: "fleet", MaxUnavailable: 1, Hosts: hosts}}
}

// openIn opens a run whose hosts may all be out of service at once, with the cells of budgets.
func (s *site) openIn(environment, budgets string, cells []message.Cell, hosts ...string) {
	s.t.Helper()
	e := message.Opened{Environment: environment, Members: hosts, Rollout: rollout.Default(len(hosts)), NotAfter: s.now.Add(4 * time.Hour), Budgets: budgets}
	e.Cells = s.ledger.CellsOf(e, cells)
	s.event(0, e)
}

// kept tells which cell keeps c1 of bern from leaving service, and who holds its places; empty
// when none does.
func (s *site) kept() string {
	s.t.Helper()
	r := s.ledger.Of("bern").Roster()
	i, known := r.Index("c1")
	if !known {
		s.t.Fatal("c1 is not in the roster of bern")
	}
	cell, kept := r.Blocking(i)
	if !kept {
		return ""
	}
	who := []string{cell.Name() + ":"}
	for _, h := range cell.Holders {
		who = append(who, h.Name)
	}
	return strings.Join(who, " ")
}

// TestOpenedWithOtherBudgets checks that a run that is opened with edited budgets counts the hosts
// of all environments by them, whether the run there is under way or has ended.
func TestOpenedWithOtherBudgets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before []message.Cell
		ends   bool
		after  []message.Cell
		want   string
	}{
		"a budget is new, and a host is being upgraded": {nil, false, fleetOf("b1", "b2", "c1"), "budget fleet: b1"},
		"a budget is new, and a host owes an answer":    {nil, true, fleetOf("b1", "b2", "c1"), "budget fleet: b1"},
		"a budget counts a host no more":                {fleetOf("b1", "b2", "c1"), true, fleetOf("b2", "c1"), ""},
		"a budget is deleted":                           {fleetOf("b1", "b2", "c1"), true, nil, ""},
	} {
		s := newSite(t)
		id := func(cells []message.Cell) string {
			if cells == nil {
				return ""
			}
			return cells[0].Budget + strings.Join(cells[0].Hosts, "")
		}
		s.openIn("basel", id(c.before), c.before, "b1", "b2")
		run := s.prepare("basel", "b1", "b2")
		s.upgrade(run, "b1")
		if c.ends {
			s.event(run, message.Finished{Result: "aborted"})
		}
		s.openIn("bern", id(c.after), c.after, "c1")
		if got := s.kept(); got != c.want {
			t.Errorf("%s: c1 is kept by %q, want %q", name, got, c.want)
		}
	}
}

// TestOpenedWithSameBudgets checks that a run that is opened with the budgets in force says only
// of its own hosts in which cells they are: the others keep theirs.
func TestOpenedWithSameBudgets(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.openIn("basel", "v1", fleetOf("b1", "b2"), "b1", "b2")
	s.upgrade(s.prepare("basel", "b1", "b2"), "b1")
	e := message.Opened{Environment: "bern", Members: []string{"c1"}, Budgets: "v1"}
	if got, want := s.ledger.CellsOf(e, fleetOf("b2", "c1")), fleetOf("c1"); !reflect.DeepEqual(got, want) {
		t.Errorf("the run of bern is opened with %+v, want %+v", got, want)
	}
	s.openIn("bern", "v1", fleetOf("b2", "c1"), "c1")
	if got := s.kept(); got != "budget fleet: b1" {
		t.Errorf("c1 is kept by %q", got)
	}
}

// tellBern has the run of bern be told that a host fell silent which shares a cell with its hosts.
func (s *site) tellBern(host string) error {
	s.t.Helper()
	e := message.Silent{Hosts: []string{host}, Cells: fleetOf(host)}
	_, err := s.add(message.Record{Kind: message.EventRecord, Run: s.ledger.Of("bern").Key(), Body: message.EncodeEvent(e)})
	return err
}

// TestNeighbourOfEndedRun checks that a host which falls silent after its run has ended counts in
// the run of another environment that shares a cell with it, once, and with what is known of it.
func TestNeighbourOfEndedRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	all := fleetOf("b1", "b2", "c1")
	s.openIn("basel", "v1", all, "b1", "b2")
	basel := s.prepare("basel", "b1", "b2")
	s.upgrade(basel, "b1")
	s.openIn("bern", "v1", all, "c1")
	bern := s.prepare("bern", "c1")
	if err := s.tellBern("b2"); err == nil {
		t.Error("the run of bern is told of a host of a run in progress")
	}
	s.event(basel, message.Released{Host: "b1", By: "ann"})
	s.event(basel, message.Finished{Result: "aborted"})
	if err := s.tellBern("b1"); err == nil {
		t.Error("a host that was released is out of service again")
	}
	if err := s.tellBern("b2"); err != nil {
		t.Fatal(err)
	}
	if got := s.kept(); got != "budget fleet: b2" {
		t.Errorf("c1 is kept by %q", got)
	}
	if got := s.ledger.Of("basel").Roster().OutOfService(); len(got) > 0 {
		t.Errorf("in basel %v are out of service", got)
	}
	if err := s.tellBern("b2"); err == nil {
		t.Error("b2 falls silent twice")
	}
	entries := s.ledger.Opening("basel", []string{"b1", "b2"}, []string{"b2"}, nil)
	if len(entries) != 2 || entries[0].Host != "b2" || !entries[0].Silent || entries[0].Since.IsZero() || entries[1].Works != message.Upgrade {
		t.Errorf("the next run of basel is opened with %+v", entries)
	}
	s.event(bern, message.Recovered{Hosts: []string{"b2"}})
	if got := s.kept(); got != "" {
		t.Errorf("b2 has recovered, and c1 is kept by %q", got)
	}
}

// TestNeighbourOfTrimmedLog checks that the log is kept from the opening of the run on that has taken
// a neighbour over, for as long as the last run of its old environment is needed: also when the run
// that has the neighbour is carried, whether this has recovered by then or not.
func TestNeighbourOfTrimmedLog(t *testing.T) {
	t.Parallel()
	for name, recovers := range map[string]bool{"silent": false, "recovered": true} {
		s := newSite(t)
		all := fleetOf("b1", "b2", "c1")
		s.openIn("bern", "v1", all, "c1")
		s.openIn("basel", "v1", all, "b1", "b2")
		s.event(s.prepare("basel", "b1", "b2"), message.Finished{Result: "aborted"})
		bern := s.prepare("bern", "c1")
		if err := s.tellBern("b2"); err != nil {
			t.Fatal(err)
		}
		if recovers {
			s.event(bern, message.Recovered{Hosts: []string{"b2"}})
		}
		s.event(bern, message.Finished{Result: "aborted"})
		s.event(0, s.ledger.Carrying(s.ledger.Of("bern")))
		var trimmed Ledger
		for _, r := range s.log[s.ledger.NeededFrom()-1:] {
			_ = trimmed.Fold(r.Decode())
		}
		for _, e := range s.ledger.Environments() {
			if other := trimmed.Of(e.Name); !reflect.DeepEqual(other.Newest(), e.Newest()) || !reflect.DeepEqual(other.Roster(), e.Roster()) {
				t.Errorf("%s: the trimmed log gives another state of %s", name, e.Name)
			}
		}
		carried := s.event(0, s.ledger.Carrying(s.ledger.Of("basel")))
		if got := s.ledger.NeededFrom(); got != carried-1 {
			t.Errorf("%s: both are carried, and the log is needed from record %d on, want %d", name, got, carried-1)
		}
	}
}

// TestInRoster checks that a host which the next run of its environment does not name is in no roster.
func TestInRoster(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.open("bern", nil, 0, "c1")
	s.open("basel", nil, 0, "b1", "b2")
	s.event(s.prepare("basel", "b1", "b2"), message.Finished{Result: "aborted"})
	s.open("basel", nil, 0, "b1")
	for host, want := range map[string]bool{"b1": true, "b2": false, "c1": true, "other": false} {
		if got := s.ledger.InRoster(host); got != want {
			t.Errorf("%s is in a roster: %t, want %t", host, got, want)
		}
	}
}

// TestReleasedNeighbour checks that nothing is news of a host that may still carry out a command of
// an earlier run: a person has released it, and it has not answered since.
func TestReleasedNeighbour(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	all := fleetOf("b1", "c1")
	run := s.owing()
	s.event(run, message.Released{Host: "b1", By: "ann"})
	e := message.Opened{Environment: "basel", Members: []string{"b2"}, Rollout: rollout.Default(1), NotAfter: s.now.Add(4 * time.Hour), Budgets: "v1"}
	e.Roster = s.ledger.Opening("basel", nil, nil, nil)
	e.Cells = s.ledger.CellsOf(e, all)
	s.event(0, e)
	s.event(s.prepare("basel", "b2"), message.Finished{Result: "aborted"})
	s.openIn("bern", "v1", all, "c1")
	s.prepare("bern", "c1")
	if err := s.tellBern("b1"); err == nil {
		t.Error("b1 was released and is out of service")
	}
	if got := s.ledger.Opening("basel", []string{"b1"}, nil, nil); len(got) != 1 || got[0].Works != message.Upgrade || got[0].Run != run {
		t.Errorf("the next run of basel is opened with %+v", got)
	}
}

// TestBudgetedForATrimmedRun checks that edited budgets count although the run under way then is not
// on the log any more.
func TestBudgetedForATrimmedRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.open("", nil, 0, "h1")
	from := s.open("bern", nil, 0, "c1")
	s.event(s.prepare("bern", "c1"), message.Finished{Result: "aborted"})
	all := fleetOf("h1", "c1", "b1")
	s.event(0, message.Budgeted{Budgets: "v1", Cells: message.Only(all, s.ledger.InRoster)})
	s.openIn("basel", "v1", all, "b1")
	s.event(s.prepare("", "h1"), message.Finished{Result: "aborted"})
	s.event(0, s.ledger.Carrying(s.ledger.Of("")))
	var trimmed Ledger
	for _, r := range s.log[from-1:] {
		_ = trimmed.Fold(r.Decode())
	}
	if got, want := trimmed.Cells().All(), s.ledger.Cells().All(); !reflect.DeepEqual(got, want) || len(want) != 1 {
		t.Errorf("the trimmed log counts %+v, and the whole one %+v", got, want)
	}
}
