package oracle

import "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"

// cell is what a disruption budget counts together.
type cell struct {
	name  string
	limit int
	hosts map[string]bool
}

// openCells notes the cells that a run is opened with: what the event says of the hosts in its
// roster. The hosts of other environments stay where they are. Of those of its own only those do
// that are out of service.
func (o *Oracle) openCells(e message.Opened) {
	o.budgets = e.Budgets
	inRoster := map[string]bool{}
	for _, name := range e.Members {
		inRoster[name] = true
	}
	for _, entry := range e.Roster {
		inRoster[entry.Host] = true
	}
	for key, c := range o.cells {
		for name := range c.hosts {
			if h := o.host(name); inRoster[name] || !h.locked && (!h.homed || h.home == e.Environment && !h.out()) {
				delete(c.hosts, name)
			}
		}
		if len(c.hosts) == 0 {
			delete(o.cells, key)
		}
	}
	o.addCells(e.Cells)
	for name, h := range o.hosts {
		if h.out() && len(o.cellsOf(name)) > 0 {
			o.count("hosts out of service in a cell when a run is opened")
		}
	}
}

// editCells notes the cells of edited budgets.
func (o *Oracle) editCells(e message.Budgeted) {
	for _, p := range o.runs {
		p.edited = true
	}
	o.budgets, o.cells = e.Budgets, map[message.CellKey]*cell{}
	o.addCells(e.Cells)
	for _, c := range o.cells {
		if out, _ := o.outOf(c, ""); out > c.limit {
			o.count("budgets that are lowered below what is out of service")
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

// neighbour reports whether an event says that a host is silent which is in no roster, and that it
// is in a cell which is known.
func (o *Oracle) neighbour(e message.Event, name string) bool {
	s, silent := e.(message.Silent)
	h := o.host(name)
	if !silent || o.run.finished || o.inRoster(name) || h.homed && h.home != o.environment {
		return false
	}
	if len(s.Cells) > 0 && len(o.cellsOf(name)) > 0 {
		return true
	}
	for _, c := range s.Cells {
		if o.cells[c.Key()] != nil && has(c.Hosts, name) {
			return true
		}
	}
	return false
}

// inRoster reports whether the run knows a host.
func (o *Oracle) inRoster(name string) bool { return o.run.roster[name] }

// addNeighbours notes the cells of hosts that are silent and in no roster.
func (o *Oracle) addNeighbours(e message.Silent) {
	for _, name := range e.Hosts {
		if !o.neighbour(e, name) {
			continue
		}
		o.run.roster[name] = true
		o.host(name).home, o.host(name).homed = o.environment, true
		o.count("neighbours that fall silent")
		if len(o.cellsOf(name)) > 0 {
			continue
		}
		for _, named := range e.Cells {
			if c := o.cells[named.Key()]; c != nil && has(named.Hosts, name) {
				c.hosts[name] = true
			}
		}
	}
}
