package roster

import (
	"cmp"
	"maps"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Cells counts the hosts that are out of service in each cell of the tenant's disruption budgets.
// It belongs to the ledger: every roster tells it what changes, so that a host counts once in a
// cell in however many rosters it is, and the count is that of the tenant. The zero value has no
// budgets.
//
// A cell has the hosts that are in a roster. Which cells there are, in which order, and the lists
// of cells that hosts have in common follow from that alone, and not from the records before:
// those may be trimmed.
type Cells struct {
	// budgets identifies the budgets, for a controller that compares them with those it reads.
	budgets string
	// list are the cells that have hosts, by budget and value.
	list []cell
	// sets are the lists of cells that hosts have in common, in order; the first is empty. users
	// count the hosts that have each.
	sets  [][]int
	users []int
	// places are the hosts that are in a cell, by name.
	places map[string]*place
	// rosters are those whose hosts are counted; none as long as there are no budgets.
	rosters []*Roster
	// freed tells that a place was given back.
	freed bool
}

// cell is what is known of a cell.
type cell struct {
	// Cell does not have the hosts: each has its place.
	message.Cell
	// hosts counts them.
	hosts int
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
	rosters := append([]*Roster{begun}, others...)
	if e.Budgets != c.budgets || e.Budgets == "" && len(e.Cells) == 0 {
		c.begin(e.Budgets, e.Cells, rosters)
		return
	}
	hosts := namesOf(begun)
	var left []string
	for _, r := range c.rosters {
		if !slices.Contains(rosters, r) {
			r.leaveCells()
			left = append(left, namesOf(r)...)
		}
	}
	before := c.rosters
	c.rosters = rosters
	for _, r := range rosters {
		if !slices.Contains(before, r) {
			r.enterCells(c)
		}
	}
	for _, host := range left {
		if !c.has(host) {
			hosts = append(hosts, host)
		}
	}
	c.enter(hosts, e.Cells)
}

// namesOf are the hosts of a roster.
func namesOf(r *Roster) []string {
	names := make([]string, len(r.hosts))
	for i, h := range r.hosts {
		names[i] = h.Name
	}
	return names
}

// has reports whether a host is in a roster.
func (c *Cells) has(host string) bool {
	return slices.ContainsFunc(c.rosters, func(r *Roster) bool { return r.Has(host) })
}

// Of returns the cells with those of their hosts that are given.
func (c *Cells) Of(hosts []string) []message.Cell {
	all := make([]message.Cell, len(c.list))
	for n := range c.list {
		all[n] = c.list[n].Cell
	}
	for _, host := range slices.Sorted(slices.Values(hosts)) {
		if p := c.places[host]; p != nil {
			for _, n := range c.sets[p.set] {
				all[n].Hosts = append(all[n].Hosts, host)
			}
		}
	}
	return slices.DeleteFunc(all, func(known message.Cell) bool { return len(known.Hosts) == 0 })
}

// Freed reports whether a place was given back since it was asked last.
func (c *Cells) Freed() bool {
	freed := c.freed
	c.freed = false
	return freed
}

// Edit puts the cells of edited budgets in place of those before, and counts the hosts of all rosters. It counts at once, and takes no
// host back.
func (c *Cells) Edit(e message.Budgeted, rosters ...*Roster) { c.begin(e.Budgets, e.Cells, rosters) }

// begin begins anew with the cells given, and counts all hosts of the rosters.
func (c *Cells) begin(budgets string, cells []message.Cell, rosters []*Roster) {
	for _, r := range c.rosters {
		for _, h := range r.hosts {
			h.place = nil
		}
	}
	*c = Cells{budgets: budgets, freed: c.freed || len(c.list) > 0}
	if budgets == "" && len(cells) == 0 {
		for _, r := range rosters {
			r.cells = nil
		}
		return
	}
	c.rosters = rosters
	of := c.arrange(cells)
	for host, list := range of {
		c.places[host] = &place{host: host, set: c.setOf(list)}
		c.join(c.places[host].set, 1)
	}
	for _, r := range rosters {
		r.enterCells(c)
	}
}

// arrange puts those cells in order that have hosts, and the lists of cells that hosts have in common.
// It returns the list of each host.
func (c *Cells) arrange(cells []message.Cell) map[string][]int {
	cells = message.Only(cells, c.has)
	slices.SortFunc(cells, func(a, b message.Cell) int { return compare(a.Key(), b.Key()) })
	of := map[string][]int{}
	for n, known := range cells {
		for _, host := range known.Hosts {
			of[host] = append(of[host], n)
		}
		known.Hosts = nil
		c.list = append(c.list, cell{Cell: known, holders: map[string]bool{}})
	}
	if len(of) > 0 {
		lists := slices.CompactFunc(slices.SortedFunc(maps.Values(of), slices.Compare), slices.Equal)
		c.sets = append([][]int{nil}, lists...)
		c.users, c.places = make([]int, len(c.sets)), make(map[string]*place, len(of))
	}
	return of
}

// compare puts cells in order.
func compare(a, b message.CellKey) int {
	return cmp.Or(cmp.Compare(a.Budget, b.Budget), cmp.Compare(a.Value, b.Value))
}

// index returns the index of a cell, or -1.
func (c *Cells) index(key message.CellKey) int {
	n, known := slices.BinarySearchFunc(c.list, key, func(known cell, key message.CellKey) int { return compare(known.Key(), key) })
	if !known {
		return -1
	}
	return n
}

// setOf returns the index of a list of cells, or -1.
func (c *Cells) setOf(list []int) int {
	n, known := slices.BinarySearchFunc(c.sets, list, slices.Compare)
	if !known {
		return -1
	}
	return n
}

// enter counts hosts by the cells of the event that has a roster take them in, as Open does, and by
// none if no roster has them any more. Where they were counted before does not matter, so that the
// records of that may be trimmed. If the cells and the lists of them stay as they are, no other host
// is touched.
func (c *Cells) enter(hosts []string, cells []message.Cell) {
	entered := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		entered[host] = true
	}
	cells = message.Only(cells, func(host string) bool { return entered[host] })
	if sets, known := c.setsOf(cells); known && c.move(hosts, sets) {
		for _, told := range cells {
			known := &c.list[c.index(told.Key())]
			c.freed = c.freed || told.MaxUnavailable > known.MaxUnavailable
			known.MaxUnavailable, known.Label = told.MaxUnavailable, told.Label
		}
		return
	}
	others := slices.DeleteFunc(slices.Collect(maps.Keys(c.places)), func(host string) bool { return entered[host] })
	c.begin(c.budgets, merge(cells, c.Of(others)), c.rosters)
}

// setsOf returns the indices of the lists of cells that hosts have by the cells given; false when one of
// these cells or lists is new.
func (c *Cells) setsOf(cells []message.Cell) (sets map[string]int, known bool) {
	lists := map[string][]int{}
	for _, told := range cells {
		n := c.index(told.Key())
		if n < 0 {
			return nil, false
		}
		for _, host := range told.Hosts {
			lists[host] = append(lists[host], n)
		}
	}
	sets = make(map[string]int, len(lists))
	for host, list := range lists {
		slices.Sort(list)
		if sets[host] = c.setOf(list); sets[host] < 0 {
			return nil, false
		}
	}
	return sets, true
}

// move gives hosts other lists of cells, by the indices of these. It reports whether each list still
// has hosts.
func (c *Cells) move(hosts []string, sets map[string]int) bool {
	for _, host := range hosts {
		p, set := c.places[host], sets[host]
		if p == nil && set == 0 || p != nil && p.set == set {
			continue
		}
		c.each(host, (*Roster).leaveCell)
		if p != nil {
			c.join(p.set, -1)
			delete(c.places, host)
		}
		if set != 0 {
			c.places[host] = &place{host: host, set: set}
			c.join(set, 1)
		}
		c.each(host, (*Roster).enterCell)
	}
	return len(c.users) == 0 || !slices.Contains(c.users[1:], 0)
}

// each does something in each roster that has a host.
func (c *Cells) each(host string, do func(r *Roster, i int)) {
	for _, r := range c.rosters {
		if i, known := r.index[host]; known {
			do(r, i)
		}
	}
}

// join counts further hosts that have a list of cells, or fewer.
func (c *Cells) join(set, hosts int) {
	c.users[set] += hosts
	for _, n := range c.sets[set] {
		c.list[n].hosts += hosts
	}
}

// merge adds the hosts of old cells to new ones, whose limits count.
func merge(cells, old []message.Cell) []message.Cell {
	all := slices.Clone(cells)
	for _, o := range old {
		n := slices.IndexFunc(all, func(c message.Cell) bool { return c.Key() == o.Key() })
		if n < 0 {
			all = append(all, o)
			continue
		}
		all[n].Hosts = slices.Concat(all[n].Hosts, o.Hosts)
	}
	return all
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
		if n := r.cells.index(named.Key()); n >= 0 {
			shared = shared || r.isIn(n)
			named.MaxUnavailable = r.cells.list[n].MaxUnavailable
			known = append(known, named)
		}
	}
	if !shared {
		return nil
	}
	return known
}

// isIn reports whether a host of the roster is in a cell.
func (r *Roster) isIn(n int) bool {
	return slices.ContainsFunc(r.hosts, func(h *Host) bool { return slices.Contains(r.CellsOf(h.SetOf()), n) })
}

// CellsOf returns a list of cells by its index.
func (r *Roster) CellsOf(set int) []int {
	if set == 0 {
		return nil
	}
	return r.cells.sets[set]
}

// Cell is a cell as others see it, without the names of its hosts.
type Cell struct {
	message.Cell
	// Size is how many hosts are in it.
	Size int
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

// seen is the cell as others see it, without its holders.
func (c *cell) seen() Cell {
	return Cell{Cell: c.Cell, Size: c.hosts, Out: c.out, Reserved: c.reserved}
}

// All returns the cells, without their holders.
func (c *Cells) All() []Cell {
	all := make([]Cell, len(c.list))
	for n, known := range c.list {
		all[n] = known.seen()
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
	for i := range r.hosts {
		r.enterCell(i)
	}
}

// enterCell counts a host of the roster in its cells.
func (r *Roster) enterCell(i int) {
	h := r.hosts[i]
	if h.moved {
		return
	}
	if h.place = r.cells.places[h.Name]; h.place != nil {
		out, reserved := r.takes(i)
		r.cells.count(h.place, out, reserved)
	}
}

// leaveCells gives back what the hosts of the roster take.
func (r *Roster) leaveCells() {
	for i := range r.hosts {
		r.leaveCell(i)
	}
}

// leaveCell gives back what a host of the roster takes.
func (r *Roster) leaveCell(i int) {
	if h := r.hosts[i]; h.place != nil {
		out, reserved := r.takes(i)
		r.cells.count(h.place, -out, -reserved)
		h.place = nil
	}
}

// AddNeighbours adds those hosts of an event that have cells in it and are not in the roster, and
// reports whether there are any.
func (r *Roster) AddNeighbours(hosts []string, cells []message.Cell) bool {
	if r.cells == nil {
		return false
	}
	var added []string
	for _, host := range hosts {
		if !r.Has(host) && slices.ContainsFunc(cells, func(c message.Cell) bool { return slices.Contains(c.Hosts, host) }) {
			i := r.add(host, NoGroup)
			*r.hosts[i] = Host{Name: host, Group: NoGroup} // It may have been here before.
			r.enterCell(i)
			added = append(added, host)
		}
	}
	if len(added) > 0 {
		r.cells.enter(added, cells)
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
	cell := r.cells.list[n].seen()
	cell.Holders = r.cells.holdersOf(n)
	return cell, true
}
