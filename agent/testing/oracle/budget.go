package oracle

import (
	"maps"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// cell is what a disruption budget counts together.
type cell struct {
	name  string
	limit int
	hosts map[string]bool
}

// openCells notes the cells that a run is opened with: what the event says of the hosts in its
// roster. The hosts of other environments stay where they are. Of those of its own only those do
// that are out of service. An event with other budgets has the cells of all hosts.
func (o *Oracle) openCells(e message.Opened) {
	if o.budgets != e.Budgets {
		o.newBudgets(e.Budgets)
		o.count("runs that are opened with edited budgets")
	}
	inRoster := map[string]bool{}
	for _, name := range e.Members {
		inRoster[name] = true
	}
	for _, entry := range e.Roster {
		inRoster[entry.Host] = true
	}
	o.dropFromCells(func(name string) bool {
		h := o.host(name)
		return inRoster[name] || !h.locked && (!h.homed || h.home == e.Environment && !h.out())
	})
	o.addCells(e.Cells)
	for name, h := range o.hosts {
		if h.out() && len(o.cellsOf(name)) > 0 {
			o.count("hosts out of service in a cell when a run is opened")
		}
	}
}

// editCells notes the cells of edited budgets.
func (o *Oracle) editCells(e message.Budgeted) {
	o.newBudgets(e.Budgets)
	o.addCells(e.Cells)
	for _, c := range o.cells {
		if out, _ := o.outOf(c, ""); out > c.limit {
			o.count("budgets that are lowered below what is out of service")
		}
	}
}

// newBudgets notes that the budgets were edited. They do not judge what hosts were told before.
func (o *Oracle) newBudgets(budgets string) {
	o.budgets, o.cells = budgets, map[message.CellKey]*cell{}
	for _, h := range o.hosts {
		h.toldBefore()
	}
}

// toldBefore notes that the limits of a host have changed. If it was told before to leave service, it still
// may.
func (h *host) toldBefore() {
	if h.member != nil && h.held() {
		h.member.outlastsLimit = true
	}
}

// dropFromCells drops hosts from their cells, and the cells that have none then.
func (o *Oracle) dropFromCells(drops func(name string) bool) {
	for key, c := range o.cells {
		maps.DeleteFunc(c.hosts, func(name string, _ bool) bool { return drops(name) })
		if len(c.hosts) == 0 {
			delete(o.cells, key)
		}
	}
}

func (o *Oracle) addCells(cells []message.Cell) {
	for _, named := range cells {
		c := o.cells[named.Key()]
		if c == nil {
			c = &cell{name: named.Name(), hosts: map[string]bool{}}
			o.cells[named.Key()] = c
		}
		if named.MaxUnavailable < c.limit {
			for name := range c.hosts {
				o.host(name).toldBefore()
			}
		}
		c.limit = named.MaxUnavailable
		for _, host := range named.Hosts {
			c.hosts[host] = true
		}
	}
}

// cellsOf returns the cells of a host.
func (o *Oracle) cellsOf(name string) []*cell {
	var all []*cell
	for _, c := range o.cells {
		if c.hosts[name] {
			all = append(all, c)
		}
	}
	return all
}

// outOf returns how many hosts of a cell but one are out of service, and how many are admitted and
// still in service.
func (o *Oracle) outOf(c *cell, but string) (out, admitted int) {
	for name := range c.hosts {
		switch h := o.hosts[name]; {
		case h == nil || name == but:
		case h.out():
			out++
		case h.member != nil && (h.member.phase == checking || h.member.phase == checked):
			admitted++
		}
	}
	return out, admitted
}

// OutOfCell returns how many hosts of a cell are out of service, and how many are admitted.
func (o *Oracle) OutOfCell(key message.CellKey) (out, admitted int) {
	if c := o.cells[key]; c != nil {
		return o.outOf(c, "")
	}
	return 0, 0
}

// mayTakePlace judges that each cell of a host has a free place for it (invariant 9). A host that
// is out of service has its place already. One that was admitted has one too, if nobody else has
// gone out of service since.
func (o *Oracle) mayTakePlace(m *member, what string, r message.Decoded) {
	if m.held() {
		m.hadPlace = true
		return
	}
	for _, c := range o.cellsOf(m.name) {
		out, admitted := o.outOf(c, m.name)
		if m.phase == checking || m.phase == checked {
			admitted = 0
		}
		if out+admitted >= c.limit {
			o.violated("invariant 9: %s by record %d, and in %s %d of at most %d are out of service, and %d are admitted", what, r.Seq, c.name, out, c.limit, admitted)
		}
		o.count("places taken in a cell")
	}
	m.outlastsLimit = false
	if m.phase != checking && m.phase != checked { // Else it took its place when it was admitted.
		o.inTurn(m, what, r)
	}
}

// keptByCell reports whether a cell of a host has no free place.
func (o *Oracle) keptByCell(h *host) bool {
	for _, c := range o.cellsOf(h.name) {
		if out, admitted := o.outOf(c, h.name); out+admitted >= c.limit {
			return true
		}
	}
	return false
}

// mayBeTakenIn reports whether no roster has a host, or that of an environment whose run has ended
// has it in service: then no other run is told that it falls silent. Of a host that was released and
// has not answered since nobody is told anything.
func (o *Oracle) mayBeTakenIn(h *host) bool {
	if p := o.runs[h.home]; h.homed && p != nil && p.roster[h.name] {
		return p.finished && !h.outByRun() && !h.removed && h.works == ""
	}
	return true
}

// neighbour reports whether an event says that a host is silent which the run may take in, and in
// which cells it is.
func (o *Oracle) neighbour(e message.Event, name string) bool {
	s, silent := e.(message.Silent)
	if !silent || o.run.finished || o.run.roster[name] || !o.mayBeTakenIn(o.host(name)) {
		return false
	}
	return (o.budgets != "" || len(o.cells) > 0) && slices.ContainsFunc(s.Cells, func(c message.Cell) bool { return has(c.Hosts, name) })
}

// addNeighbours notes the cells of hosts that are silent and that the run takes in.
func (o *Oracle) addNeighbours(e message.Silent) {
	for _, name := range e.Hosts {
		if !o.neighbour(e, name) {
			continue
		}
		if h := o.host(name); h.homed && h.home != o.environment {
			o.leave(h)
			h.member = nil
			o.count("hosts of an ended run that another one takes in")
		}
		o.run.roster[name] = true
		o.host(name).home, o.host(name).homed = o.environment, true
		o.count("neighbours that fall silent")
		o.dropFromCells(func(host string) bool { return host == name })
		o.addCells(message.Only(e.Cells, func(host string) bool { return host == name }))
	}
}
