package roster

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// racks are the cells of two budgets over the hosts of both rosters.
func racks(limit int) []message.Cell {
	return []message.Cell{
		{Budget: "racks", Label: "rack", Value: "r1", MaxUnavailable: limit, Hosts: []string{"h0", "h1", "i0", "i1", "aside"}},
		{Budget: "racks", Label: "rack", Value: "r2", MaxUnavailable: 1, Hosts: []string{"h2", "beyond", "i2"}},
		{Budget: "fleet", MaxUnavailable: 3, Hosts: []string{"h0", "h1", "h2", "i0"}},
	}
}

// TestCells plays anything that can happen to the hosts of two rosters, which share hosts and
// cells, in any order, with runs that are opened and budgets that are edited in between. It holds
// that each cell counts each host once, and the same as a count of all hosts.
func TestCells(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var cells Cells
		rosters := []*Roster{Open(opened(), epoch), Open(other(), epoch)}
		cells.Open(opening(opened(), racks(2)), rosters[0])
		cells.Open(opening(other(), racks(1)), rosters[1], rosters[0])
		for n := range rapid.IntRange(0, 40).Draw(rt, "records") {
			now, k := epoch.Add(time.Duration(n)*time.Minute), rapid.IntRange(0, 1).Draw(rt, "roster")
			switch r := rosters[k]; rapid.IntRange(0, 9).Draw(rt, "event") {
			case 0:
				cells.Edit(message.Budgeted{Cells: racks(rapid.IntRange(1, 3).Draw(rt, "limit"))}, rosters...)
			case 1:
				r.Finish()
				e := []message.Opened{opened(), other()}[k]
				e.Roster = r.Opening(nil, nil)
				rosters[k] = Open(e, now)
				cells.Open(opening(e, racks(2)), rosters[k], rosters[1-k])
			case 2:
				r.AddNeighbours([]string{"stranger"}, []message.Cell{{Budget: "racks", Value: "r2", MaxUnavailable: 1, Hosts: []string{"stranger"}}})
			default:
				what := rapid.SampledFrom(slices.Sorted(maps.Keys(happens(r)))).Draw(rt, "what")
				happens(r)[what](rapid.IntRange(0, len(r.From(0))-1).Draw(rt, "host"), now)
			}
			recount(rt, &cells, rosters...)
		}
		one, all := rosters[0].Clone(), CloneAll(rosters)
		for _, copies := range [][]*Roster{{one, rosters[1]}, all} {
			what := happens(copies[0])
			what[rapid.SampledFrom(slices.Sorted(maps.Keys(what))).Draw(rt, "what happens to a copy")](rapid.IntRange(0, len(copies[0].From(0))-1).Draw(rt, "host"), epoch.Add(time.Hour))
			recount(rt, copies[0].cells, copies...)
			recount(rt, &cells, rosters...)
		}
	})
}

// other opens a run of other hosts, one of which is a neighbour of the first run, too.
func other() message.Opened {
	e := opened()
	e.Members, e.Roster = []string{"i0", "i1", "i2", "i3"}, []message.Entry{{Host: "aside", Stage: "second"}}
	return e
}

func opening(e message.Opened, cells []message.Cell) message.Opened {
	e.Cells = message.Only(cells, func(host string) bool {
		return slices.Contains(e.Members, host) || slices.ContainsFunc(e.Roster, func(e message.Entry) bool { return e.Host == host })
	})
	return e
}

// recount counts the hosts of each cell one by one.
func recount(rt *rapid.T, cells *Cells, rosters ...*Roster) {
	for n, c := range cells.All() {
		out, reserved := map[string]bool{}, map[string]bool{}
		for _, r := range rosters {
			for i, h := range r.From(0) {
				if !slices.Contains(c.Hosts, h.Name) {
					continue
				}
				if r.CountsAsOut(i) {
					out[h.Name] = true
				} else if h.admitted {
					reserved[h.Name] = true
				}
			}
		}
		maps.DeleteFunc(reserved, func(host string, _ bool) bool { return out[host] })
		if len(rosters) == 2 && (c.Out != len(out) || c.Reserved != len(reserved)) {
			rt.Fatalf("%s counts %d out of service and %d admitted; they are %v and %v", c.Name(), c.Out, c.Reserved, out, reserved)
		}
		for _, holder := range cells.holdersOf(n) {
			if !out[holder.Name] && !reserved[holder.Name] {
				rt.Fatalf("%s holds a place in %s, and does not", holder.Name, c.Name())
			}
		}
		if got := len(cells.holdersOf(n)); len(rosters) == 2 && got != len(out)+len(reserved) {
			rt.Fatalf("%s has %d holders; they are %v and %v", c.Name(), got, out, reserved)
		}
	}
}

// TestMayLeaveCells checks who may leave service: a place is free in each cell of the host, also
// for the run that did not take the places.
func TestMayLeaveCells(t *testing.T) {
	t.Parallel()
	var cells Cells
	first, second := Open(opened(), epoch), Open(other(), epoch)
	cells.Open(opening(opened(), racks(1)), first)
	cells.Open(opening(other(), racks(1)), second, first)
	may := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, r := range []*Roster{first, second} {
			for i, h := range r.From(0) {
				if h.Group != NoGroup && r.MayLeave(i) {
					got = append(got, h.Name)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v may leave service, want %v", when, got, want)
		}
	}
	may("at first", "h0", "h1", "h3", "aside", "i0", "i1", "i3", "aside")
	first.Admit(0, epoch)
	may("h0 is admitted", "h0", "h3", "i3")
	if c, blocked := second.Blocking(1); !blocked || c.Name() != "budget racks, rack r1" || len(c.Holders) != 1 || c.Holders[0].Name != "h0" {
		t.Errorf("i1 is kept by %+v", c)
	}
	first.Fail(0, message.BeforeHost, epoch)
	may("h0 fails its checks", "h0", "h3", "i3")
	first.Pass(0, message.BeforeHost, epoch)
	may("and passes them", "h0", "h1", "h3", "aside", "i0", "i1", "i3", "aside")
	first.Take(0, epoch)
	cells.Edit(message.Budgeted{Cells: racks(2)}, first, second)
	may("the limit is raised", "h0", "h3", "aside", "i0", "i1", "i3", "aside")
	if got := cells.All()[0]; got.Out != 1 || got.Full() {
		t.Errorf("after the edit the cell is %+v", got)
	}
}
