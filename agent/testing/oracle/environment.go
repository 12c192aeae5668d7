package oracle

import (
	"maps"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// In returns an oracle that answers questions of the run of an environment, as it is now: who
// does not ask it asks of the default environment, whose name is empty.
func (o *Oracle) In(environment string) *Oracle {
	in := *o
	in.asked = environment
	return &in
}

// Environments returns the environments that have had a run, by name.
func (o *Oracle) Environments() []string { return slices.Sorted(maps.Keys(o.runs)) }

// Grouped notes that there are other environments than the default one.
func (o *Oracle) Grouped() { o.grouped = true }

// turnTo finds the run of the record at hand.
func (o *Oracle) turnTo(r message.Decoded) {
	environment, known := o.environmentOf(r)
	o.environment, o.run = environment, nil
	if known {
		o.run = o.runs[environment]
	}
}

// environmentOf returns the environment that a record names, or that of the run that it names.
// As long as there is only the default one, a record that names no run is of that.
func (o *Oracle) environmentOf(r message.Decoded) (name string, known bool) {
	switch e := r.Event.(type) {
	case message.Opened:
		return e.Environment, true
	case message.Missed:
		return e.Environment, true
	case message.Carried:
		return e.Environment, true
	}
	if r.Kind == message.CommandAll {
		return r.Environment, true
	}
	for name, p := range o.runs {
		if r.Run != 0 && (p.id == r.Run || p.opened == r.Run) {
			return name, true
		}
	}
	if r.Kind == message.EventRecord && r.Run != 0 {
		return "", false
	}
	return "", len(o.runs) == 1 && o.runs[""] != nil
}

// byID returns a run by the sequence of its prepare; nil if it is not the newest of its
// environment.
func (o *Oracle) byID(id uint64) *run {
	for _, p := range o.runs {
		if id != 0 && p.id == id {
			return p
		}
	}
	return nil
}

// mayOpen reports whether the opening of a run counts: it names no member of another run
// under way (invariant 10).
func (o *Oracle) mayOpen(e message.Opened) bool {
	for _, name := range names(e) {
		if h := o.hosts[name]; h != nil && h.member != nil && !h.member.run.finished {
			return false
		}
	}
	return true
}

// names are the hosts that the opening of a run names.
func names(e message.Opened) []string {
	all := slices.Clone(e.Members)
	for _, entry := range e.Roster {
		all = append(all, entry.Host)
	}
	return all
}

// takeOver takes the hosts that an opening names into the roster of its environment (invariant
// 11): a host that counted in a stage of another run counts there no more.
func (o *Oracle) takeOver(e message.Opened) {
	for _, name := range names(e) {
		h := o.host(name)
		if h.homed && h.home != e.Environment {
			o.count("hosts that move to another environment")
			o.leave(h)
		}
		h.home, h.homed = e.Environment, true
	}
}

// leave has a host be in no roster.
func (o *Oracle) leave(h *host) {
	for _, p := range o.runs {
		delete(p.roster, h.name)
		for n := range p.stages {
			p.stages[n].hosts = slices.DeleteFunc(p.stages[n].hosts, func(other *host) bool { return other == h })
		}
	}
}

// carried judges that what is carried of an environment is all that its hosts owe (invariant
// 11), and forgets their parts in its run.
func (o *Oracle) carried(r message.Decoded, c message.Carried) {
	e := message.Opened{Environment: c.Environment, Roster: c.Roster, Budgets: c.Budgets, Cells: c.Cells}
	o.compareDebts(r, e, announced(e))
	o.compareWorks(r, e)
	o.samePromotion(r.Seq, c.Environment, c.Promotion)
	switch before := o.soFar[c.Environment]; {
	case (c.Reached == nil) != (before == nil):
		o.violated("invariant 15: record %d carries %+v of environment %q, and its runs have done %+v", r.Seq, c.Reached, c.Environment, before)
	case before != nil:
		o.sameReached(r.Seq, c.Reached, before)
	}
	for _, h := range o.hosts {
		if h.homed && h.home == c.Environment {
			h.member, h.worksBefore = nil, true
		}
	}
	if p := o.run; p != nil {
		p.members, p.stages, p.roster = nil, nil, map[string]bool{}
		for _, name := range names(e) {
			p.roster[name] = true
		}
	}
	o.openCells(e)
	o.count("environments that are carried")
}
