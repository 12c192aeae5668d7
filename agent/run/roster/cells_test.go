package roster

import (
	"maps"
	"reflect"
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

// drawRacks draws cells of two budgets over the hosts of both rosters, of locked ones and of others.
func drawRacks(rt *rapid.T) []message.Cell {
	cells := racks(rapid.IntRange(1, 3).Draw(rt, "limit"))
	for n := range cells {
		cells[n].Hosts = nil
	}
	for _, host := range []string{"h0", "h1", "h2", "h3", "i0", "i1", "i2", "i3", "aside", "beyond", "stranger"} {
		if n := rapid.IntRange(0, 2).Draw(rt, "rack of "+host); n < 2 {
			cells[n].Hosts = append(cells[n].Hosts, host)
		}
		if rapid.Bool().Draw(rt, host+" is in fleet") {
			cells[2].Hosts = append(cells[2].Hosts, host)
		}
	}
	return message.Only(cells, func(string) bool { return true })
}

// cellsOf are those of some cells that hosts have.
func cellsOf(cells []message.Cell, hosts ...string) []message.Cell {
	return message.Only(cells, func(host string) bool { return slices.Contains(hosts, host) })
}

// TestCells plays anything that can happen to the hosts of two rosters, which share hosts and
// cells, in any order, with runs that are opened, hosts that are locked and move, and budgets that are
// edited in between. It holds that each cell counts each host once, and the same as a count of all
// hosts from the beginning.
func TestCells(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var cells Cells
		locks := &Roster{}
		rosters := []*Roster{Open(opened(), epoch), Open(other(), epoch), locks}
		cells.Open(opening(opened(), racks(2)), rosters[0])
		cells.Open(opening(other(), racks(1)), rosters[1], rosters[0])
		for n := range rapid.IntRange(0, 40).Draw(rt, "records") {
			now, k := epoch.Add(time.Duration(n)*time.Minute), rapid.IntRange(0, 1).Draw(rt, "roster")
			host := rapid.SampledFrom([]string{"h0", "i1", "aside", "stranger"}).Draw(rt, "which")
			switch r := rosters[k]; rapid.IntRange(0, 12).Draw(rt, "event") {
			case 0:
				cells.Edit(message.Budgeted{Budgets: "v2", Cells: drawRacks(rt)}, slices.Clone(rosters)...)
			case 1, 2:
				r.Finish()
				e := []message.Opened{opened(), other()}[k]
				e.Roster, e.Budgets = r.Opening(nil, nil), cells.Budgets()
				rosters[k] = Open(e, now)
				cells.Open(opening(e, drawRacks(rt)), rosters[k], rosters[1-k], locks)
			case 3:
				r.AddNeighbours([]string{"stranger"}, cellsOf(drawRacks(rt), "stranger"))
			case 4:
				cells.AddLocked(locks, message.Locked{Host: host, Budgets: cells.Budgets(), Cells: cellsOf(drawRacks(rt), host)}, now)
			case 5:
				cells.RemoveLocked(locks, host)
			case 6:
				if i, known := r.Index(host); known && rosters[1-k].Has(host) { // That has named it.
					r.Leave(i, now)
				}
			default:
				what := rapid.SampledFrom(slices.Sorted(maps.Keys(happens(r)))).Draw(rt, "what")
				happens(r)[what](rapid.IntRange(0, len(r.From(0))-1).Draw(rt, "host"), now)
			}
			recount(rt, &cells, rosters...)
			asFromTheBeginning(rt, &cells)
		}
		one, all := rosters[0].Clone(), CloneAll(rosters)
		for _, copies := range [][]*Roster{{one, rosters[1], locks}, all} {
			if copies[0].cells == nil {
				continue
			}
			what := happens(copies[0])
			what[rapid.SampledFrom(slices.Sorted(maps.Keys(what))).Draw(rt, "what happens to a copy")](rapid.IntRange(0, len(copies[0].From(0))-1).Draw(rt, "host"), epoch.Add(time.Hour))
			recount(rt, copies[0].cells, copies...)
			recount(rt, &cells, rosters...)
		}
	})
}

// asFromTheBeginning holds that the cells are what they would be if all hosts were entered now.
func asFromTheBeginning(rt *rapid.T, cells *Cells) {
	var copies []*Roster
	for _, r := range cells.rosters {
		copies = append(copies, r.Clone())
	}
	var again Cells
	again.begin(cells.budgets, cells.Of(slices.Collect(maps.Keys(cells.places))), copies)
	if !reflect.DeepEqual(again.list, cells.list) || !reflect.DeepEqual(again.sets, cells.sets) || !slices.Equal(again.users, cells.users) {
		rt.Fatalf("counted from the beginning the cells are %+v, with the lists %v of %v hosts; they are %+v, with %v of %v", again.list, again.sets, again.users, cells.list, cells.sets, cells.users)
	}
	for n, r := range cells.rosters {
		for i, h := range r.hosts {
			if was, is := copies[n].hosts[i].place, h.place; (was == nil) != (is == nil) || is != nil && *was != *is || is != cells.places[h.Name] && !h.moved {
				rt.Fatalf("counted from the beginning %s takes %+v; it takes %+v", h.Name, was, is)
			}
		}
	}
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
	whole := len(rosters) > 1
	for n, c := range cells.All() {
		in := map[string]bool{}
		out, reserved := map[string]bool{}, map[string]bool{}
		for _, r := range rosters {
			for i, h := range r.From(0) {
				if h.moved || !slices.Contains(r.CellsOf(h.SetOf()), n) {
					continue
				}
				in[h.Name] = true
				if r.CountsAsOut(i) || h.IsLocked() {
					out[h.Name] = true
				} else if h.admitted {
					reserved[h.Name] = true
				}
			}
		}
		maps.DeleteFunc(reserved, func(host string, _ bool) bool { return out[host] })
		if whole && (c.Out != len(out) || c.Reserved != len(reserved)) {
			rt.Fatalf("%s counts %d out of service and %d admitted; they are %v and %v", c.Name(), c.Out, c.Reserved, out, reserved)
		}
		if whole && (c.Size != len(in) || len(in) == 0) {
			rt.Fatalf("%s has %d hosts; they are %v", c.Name(), c.Size, in)
		}
		for _, holder := range cells.holdersOf(n) {
			if !out[holder.Name] && !reserved[holder.Name] {
				rt.Fatalf("%s holds a place in %s, and does not", holder.Name, c.Name())
			}
		}
		if got := len(cells.holdersOf(n)); whole && got != len(out)+len(reserved) {
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
