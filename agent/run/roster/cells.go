package roster

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Cells counts the hosts that are out of service in each cell of the tenant's disruption budgets.
// It belongs to the ledger: every roster tells it what changes, so that a host counts once in a
// cell in however many rosters it is, and the count is that of the tenant. The zero value has no
// budgets.
type Cells struct {
	// budgets identifies the budgets, for a controller that compares them with those it reads.
	budgets string
	list    []cell
	// sets are the lists of cells, by their index, that hosts have in common. The first is empty.
	sets [][]int
	// places are the hosts that are in a cell, by name.
	places map[string]*place
	// rosters are those whose hosts are counted; none as long as there are no budgets.
	rosters []*Roster
	// freed tells that a place was given back.
	freed bool
}

// cell is what is known of a cell.
type cell struct {
	message.Cell
	// out counts its hosts that are out of service, reserved those in service that were
	// admitted: a place is taken for them already, so that they need not be checked again.
	out, reserved int
	// holders are these hosts.
	holders map[string]bool
}

// place is what a host takes in its cells.
type place struct {
	host string
	// set is the index of the list of its cells.
	set int
	// out and reserved count the rosters in which the host is out of service, or in service and
	// admitted.
	out, reserved int
}

// takes returns what a host takes in each of its cells: 0 or 1 of either.
func (p *place) takes() (out, reserved int) {
	switch {
	case p.out > 0:
		return 1, 0
	case p.reserved > 0:
		return 0, 1
	}
	return 0, 0
}

// Budgets identifies the budgets that are in force; empty when there are none.
func (c *Cells) Budgets() string { return c.budgets }

// Counts reports whether any host is in a cell.
func (c *Cells) Counts() bool { return len(c.places) > 0 }

// Open counts the hosts of the roster that an event has begun by the cells of the event. As long
// as the budgets are the same, hosts that are only in other rosters keep their cells: what counts
// is what the log says of a host, not the labels that it has now. An event with other budgets has
// the cells of all hosts.
func (c *Cells) Open(e message.Opened, begun *Roster, others ...*Roster) {
	for _, r := range c.rosters {
		r.leaveCells()
	}
	var kept []message.Cell
	if e.Budgets == c.budgets {
		again := begun.Has
		e.Cells = message.Only(e.Cells, again)
		elsewhere := hostsOf(others)
		kept = c.of(func(host string) bool { return elsewhere[host] && !again(host) })
	}
	c.set(e.Budgets, merge(e.Cells, kept), append([]*Roster{begun}, others...))
}

// hostsOf are the hosts that rosters have.
func hostsOf(rosters []*Roster) map[string]bool {
	size := 0
	for _, r := range rosters {
		size += len(r.hosts)
	}
	all := make(map[string]bool, size)
	for _, r := range rosters {
		for _, h := range r.hosts {
			if !h.moved {
				all[h.Name] = true
			}
		}
	}
	return all
}

// Of returns the cells with those of their hosts that are given.
func (c *Cells) Of(hosts []string) []message.Cell {
	given := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		given[host] = true
	}
	return c.of(func(host string) bool { return given[host] })
}

// Freed reports whether a place was given back since it was asked last.
func (c *Cells) Freed() bool {
	freed := c.freed
	c.freed = false
	return freed
}

// Edit puts the cells of edited budgets in place of those before, and counts the hosts of all rosters. It counts at once, and takes no
// host back.
func (c *Cells) Edit(e message.Budgeted, rosters ...*Roster) {
	for _, r := range c.rosters {
		r.leaveCells()
	}
	c.set(e.Budgets, e.Cells, rosters)
}

// of returns the cells as they are, with some of their hosts.
func (c *Cells) of(keep func(host string) bool) []message.Cell {
	all := make([]message.Cell, len(c.list))
	for n := range c.list {
		all[n] = c.list[n].Cell
	}
	return message.Only(all, keep)
}

// merge adds the hosts of old cells to new ones, whose limits count. The cells are sorted, so that
// they do not depend on records that may be trimmed.
func merge(cells, old []message.Cell) []message.Cell {
	all := slices.Clone(cells)
	for _, o := range old {
		n := slices.IndexFunc(all, func(c message.Cell) bool { return c.Key() == o.Key() })
		if n < 0 {
			all = append(all, o)
			continue
		}
		all[n].Hosts = append(slices.Clone(all[n].Hosts), o.Hosts...)
	}
	slices.SortFunc(all, func(a, b message.Cell) int {
		return cmp.Or(cmp.Compare(a.Budget, b.Budget), cmp.Compare(a.Value, b.Value))
	})
	return all
}

// set begins anew with the cells given, and counts all hosts of the rosters.
func (c *Cells) set(budgets string, cells []message.Cell, rosters []*Roster) {
	*c = Cells{budgets: budgets, freed: c.freed}
	if budgets == "" && len(cells) == 0 {
		for _, r := range rosters {
			r.cells = nil
		}
		return
	}
	c.rosters = rosters
	of := map[string][]int{}
	for n, known := range cells {
		c.list = append(c.list, cell{Cell: known, holders: map[string]bool{}})
		for _, host := range known.Hosts {
			of[host] = append(of[host], n)
		}
	}
	if len(of) > 0 {
		c.sets, c.places = [][]int{nil}, make(map[string]*place, len(of))
	}
	ids := map[string]int{}
	for _, known := range cells {
		for _, host := range known.Hosts {
			if c.places[host] == nil {
				c.places[host] = &place{host: host, set: c.setOf(of[host], ids)}
			}
		}
	}
	for _, r := range rosters {
		r.enterCells(c)
	}
}

// setOf returns the index of a list of cells, which ids has by the text of the list.
func (c *Cells) setOf(list []int, ids map[string]int) int {
	var text []byte
	for _, n := range list {
		text = append(strconv.AppendInt(text, int64(n), 10), ',')
	}
	set, known := ids[string(text)]
	if !known {
		set = len(c.sets)
		ids[string(text)], c.sets = set, append(c.sets, list)
	}
	return set
}

// admit counts hosts by the cells of the event that has a roster take them in, as Open does: where
// they were counted before does not matter, so that the records of that may be trimmed.
func (c *Cells) admit(cells []message.Cell, hosts map[string]bool) {
	rosters := c.rosters
	for _, r := range rosters {
		r.leaveCells()
	}
	known := hostsOf(rosters)
	kept := c.of(func(host string) bool { return known[host] && !hosts[host] })
	taken := message.Only(cells, func(host string) bool { return hosts[host] })
	c.set(c.budgets, merge(taken, kept), rosters)
}

// count changes what a host takes in its cells.
func (c *Cells) count(p *place, out, reserved int) {
	if p == nil || out == 0 && reserved == 0 {
		return
	}
	wasOut, wasReserved := p.takes()
	p.out, p.reserved = p.out+out, p.reserved+reserved
	isOut, isReserved := p.takes()
	c.freed = c.freed || isOut+isReserved < wasOut+wasReserved
	for _, n := range c.sets[p.set] {
		c.list[n].add(p.host, isOut-wasOut, isReserved-wasReserved)
	}
}

// add changes by how much a host counts, which counts once or not at all.
func (c *cell) add(host string, out, reserved int) {
	c.out, c.reserved = c.out+out, c.reserved+reserved
	switch out + reserved {
	case 1:
		c.holders[host] = true
	case -1:
		delete(c.holders, host)
	}
}

// BudgetsAre reports whether the budgets in force are those that a text identifies.
func (r *Roster) BudgetsAre(budgets string) bool {
	if r.cells == nil {
		return budgets == ""
	}
	return r.cells.budgets == budgets
}

// Shares returns those of some cells that are counted, with their limits; none if no host of the
// roster is in any of them.
func (r *Roster) Shares(cells []message.Cell) []message.Cell {
	if !r.Budgeted() {
		return nil
	}
	var known []message.Cell
	shared := false
	for _, named := range cells {
		n := slices.IndexFunc(r.cells.list, func(c cell) bool { return c.Key() == named.Key() })
		if n >= 0 {
			shared = shared || slices.ContainsFunc(r.cells.list[n].Hosts, r.Has)
			named.MaxUnavailable = r.cells.list[n].MaxUnavailable
			known = append(known, named)
		}
	}
	if !shared {
		return nil
	}
	return known
}

// Cell is a cell as others see it.
type Cell struct {
	message.Cell
	// Out counts its hosts that are out of service, Reserved those that are about to leave
	// service.
	Out, Reserved int
	// Holders are these hosts.
	Holders []Holder
}

// Full reports whether no host of the cell may leave service.
func (c Cell) Full() bool { return c.free() <= 0 }

// Holder is a host that has a place in a cell.
type Holder struct {
	*Host
	// Run is the run whose roster has the host.
	Run uint64
}

// All returns the cells, without their holders.
func (c *Cells) All() []Cell {
	all := make([]Cell, len(c.list))
	for n, known := range c.list {
		all[n] = Cell{Cell: known.Cell, Out: known.out, Reserved: known.reserved}
	}
	return all
}

// Fullest returns at most so many cells, with their holders: those with the fewest free places
// first.
func (c *Cells) Fullest(most int) []Cell {
	all := c.All()
	for n := range all {
		all[n].Holders = c.holdersOf(n)
	}
	slices.SortStableFunc(all, func(a, b Cell) int { return a.free() - b.free() })
	return all[:min(len(all), most)]
}

// free returns how many further hosts of the cell may leave service; less than 0 if it is exceeded.
func (c Cell) free() int { return c.MaxUnavailable - c.Out - c.Reserved }

// holdersOf returns the hosts that have a place in a cell.
func (c *Cells) holdersOf(n int) []Holder {
	names := slices.Sorted(maps.Keys(c.list[n].holders))
	all := make([]Holder, 0, len(names))
	for _, name := range names {
		for _, r := range c.rosters {
			i, known := r.index[name]
			if !known {
				continue
			}
			if out, reserved := r.takes(i); out+reserved > 0 {
				all = append(all, Holder{Host: r.hosts[i], Run: r.run})
				break
			}
		}
	}
	return all
}

// clone returns a copy that has copies of rosters in place of them, and none of their places.
func (c *Cells) clone(copies map[*Roster]*Roster) *Cells {
	clone := &Cells{budgets: c.budgets, list: slices.Clone(c.list), sets: c.sets, rosters: slices.Clone(c.rosters)}
	for n := range clone.list {
		clone.list[n].holders = maps.Clone(clone.list[n].holders)
	}
	for n, r := range clone.rosters {
		clone.rosters[n] = cmp.Or(copies[r], r)
	}
	return clone
}

// copyPlaces has copies of hosts take copies of their places. copied are those made so far: a host
// takes the same place in each roster.
func copyPlaces(hosts []Host, copied map[*place]*place) {
	places := make([]place, len(hosts))
	for i := range hosts {
		p := hosts[i].place
		if p == nil {
			continue
		}
		if copied[p] == nil {
			places[i] = *p
			copied[p] = &places[i]
		}
		hosts[i].place = copied[p]
	}
}

// takes returns what a host of the roster takes in its cells.
func (r *Roster) takes(i int) (out, reserved int) {
	switch {
	case r.CountsAsOut(i), r.hosts[i].IsLocked():
		return 1, 0
	case r.hosts[i].admitted:
		return 0, 1
	}
	return 0, 0
}

// enterCells counts the hosts of the roster in their cells.
func (r *Roster) enterCells(c *Cells) {
	r.cells = c
	for i, h := range r.hosts {
		if h.moved {
			h.place = nil
			continue
		}
		if h.place = c.places[h.Name]; h.place != nil {
			out, reserved := r.takes(i)
			c.count(h.place, out, reserved)
		}
	}
}

// leaveCells gives back what the hosts of the roster take.
func (r *Roster) leaveCells() {
	for i, h := range r.hosts {
		if h.place != nil {
			out, reserved := r.takes(i)
			r.cells.count(h.place, -out, -reserved)
			h.place = nil
		}
	}
}

// AddNeighbours adds those hosts of an event that have cells in it and are not in the roster, and
// reports whether there are any.
func (r *Roster) AddNeighbours(hosts []string, cells []message.Cell) bool {
	if r.cells == nil {
		return false
	}
	added := map[string]bool{}
	for _, host := range hosts {
		if !r.Has(host) && slices.ContainsFunc(cells, func(c message.Cell) bool { return slices.Contains(c.Hosts, host) }) {
			*r.hosts[r.add(host, NoGroup)] = Host{Name: host, Group: NoGroup} // It may have been here before.
			added[host] = true
		}
	}
	if len(added) > 0 {
		r.cells.admit(cells, added)
	}
	return len(added) > 0
}

// SetOf returns the index of the list of a host's cells: hosts with the same cells have the same.
func (h *Host) SetOf() int {
	if h.place == nil {
		return 0
	}
	return h.place.set
}

// Sets returns how many lists of cells there are.
func (r *Roster) Sets() int {
	if r.cells == nil {
		return 1
	}
	return max(1, len(r.cells.sets))
}

// Budgeted reports whether hosts of the tenant are in cells.
func (r *Roster) Budgeted() bool { return r.cells != nil && len(r.cells.list) > 0 }

// Admits reports whether a host with a list of cells, by its index, may leave service, or be
// admitted: in each of them there is a free place.
func (r *Roster) Admits(set int) bool {
	return set == 0 || r.full(set, 1) < 0
}

// CellsOf returns a list of cells by its index.
func (r *Roster) CellsOf(set int) []int {
	if set == 0 {
		return nil
	}
	return r.cells.sets[set]
}

// BudgetsOf returns the disruption budgets of a list of cells by its index.
func (r *Roster) BudgetsOf(set int) []string {
	var budgets []string
	for _, n := range r.CellsOf(set) {
		budgets = append(budgets, r.cells.list[n].Budget)
	}
	return budgets
}

// HasFreePlace reports whether a host may take a place in any cell of a list, by its index.
func (r *Roster) HasFreePlace(set int) bool {
	return slices.ContainsFunc(r.CellsOf(set), func(n int) bool {
		c := &r.cells.list[n]
		return c.out+c.reserved < c.MaxUnavailable
	})
}

// full returns the first cell of a list that is full, or -1. An own reservation does not count
// against a host: reserved is 0 for one that has it, and else 1.
func (r *Roster) full(set, reserved int) int {
	for _, n := range r.cells.sets[set] {
		if c := &r.cells.list[n]; c.out+c.reserved*reserved >= c.MaxUnavailable {
			return n
		}
	}
	return -1
}

// blocking returns the cell that keeps a host from leaving service, or -1.
func (r *Roster) blocking(i int) int {
	switch p := r.hosts[i].place; {
	case p == nil || p.out > 0:
		return -1
	case p.reserved > 0:
		return r.full(p.set, 0)
	default:
		return r.full(p.set, 1)
	}
}

// Blocking returns the first cell that keeps a host from leaving service, with its holders; false
// when none does.
func (r *Roster) Blocking(i int) (Cell, bool) {
	n := r.blocking(i)
	if n < 0 {
		return Cell{}, false
	}
	c := r.cells.list[n]
	return Cell{Cell: c.Cell, Out: c.out, Reserved: c.reserved, Holders: r.cells.holdersOf(n)}, true
}
